#include "server/rpc/offload.h"

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "server/base/log.h"
#include "server/http2/inflate.h"
#include "server/inference/servable.h"
#include "server/metrics/metrics.h"
#include "server/rpc/predict_call.h"
#include "server/rpc/worker_call.h"
#include "server/wire/predict_request.h"
#include "server/wire/schema.h"

namespace colcast::rpc {
namespace {

grpc_compression_algorithm AlgorithmOf(http2::Compression compression) {
  switch (compression) {
    case http2::Compression::kGzip:
      return GRPC_COMPRESS_GZIP;
    case http2::Compression::kDeflate:
      return GRPC_COMPRESS_DEFLATE;
    case http2::Compression::kNone:
      break;
  }
  return GRPC_COMPRESS_NONE;
}

// From gRPC's messages to the server's and back; the bytes stay where they are.
Message FromGrpc(const grpc::ByteBuffer& buffer) {
  Message message;
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return message;
  for (grpc::Slice& slice : slices) {
    const auto owner = std::make_shared<grpc::Slice>(std::move(slice));
    message.Append(owner, owner->begin(), owner->size());
  }
  return message;
}

grpc::ByteBuffer ToGrpc(const Message& message) {
  std::vector<grpc_slice> slices;
  for (size_t i = 0; i < message.slices().size(); ++i) {
    const Slice& slice = message.slices()[i];
    auto* const owner = new Message::Owner(message.owners()[i]);
    slices.push_back(grpc_slice_new_with_user_data(
        const_cast<uint8_t*>(slice.data), slice.size,
        [](void* kept) { delete static_cast<Message::Owner*>(kept); }, owner));
  }
  grpc::ByteBuffer buffer;
  // The two have the same representation, says the header.
  *reinterpret_cast<grpc_byte_buffer**>(&buffer) = grpc_raw_compressed_byte_buffer_create(
      slices.data(), slices.size(), AlgorithmOf(message.compression()));
  for (const grpc_slice& slice : slices) grpc_slice_unref(slice);
  return buffer;
}

constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";
// In what is sent on: by which server.
constexpr char kSentOnBy[] = "colcast-sent-on-by";
constexpr std::chrono::seconds kPause{1};
constexpr size_t kMaxInflatedBytes = 4 << 20;  // of a compressed request, to see its rows

std::shared_ptr<grpc::Channel> Connect(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // Answers as they can be passed on.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

std::string RandomId() {
  std::random_device random;
  return std::to_string(random()) + std::to_string(random());
}

// The largest first dimension of a request's inputs.
int64_t RowsOf(const DecodedRequest& request) {
  int64_t rows = 0;
  for (const Column& column : request) {
    if (!column.dims.empty()) rows = std::max(rows, column.dims.front());
  }
  return rows;
}

// Names and shapes of a request. A thread keeps one and uses it again.
struct Peek {
  Message message;
  DecodedRequest request;

  bool Read(const Message& received, size_t max_columns) {
    message = received;
    return http2::Inflate(kMaxInflatedBytes, &message).ok() &&
           DecodePredictRequest(message.bytes(), &request, max_columns).ok();
  }
};

}  // namespace

// A call while the other server has it. Owns itself until that has ended.
class OffloadedCall {
 public:
  OffloadedCall(Offload* offload, Call* call, const DecodedRequest& request,
                std::shared_ptr<const inference::Servable> servable)
      : offload_(offload),
        call_(call),
        servable_(std::move(servable)),
        started_(std::chrono::steady_clock::now()) {
    record_.api = "Predict";
    record_.entrypoint = "GRPC";
    record_.model_name = servable_->name();
    record_.signature_name = servable_->SignatureLabel(request.model_spec().signature_name);
    record_.expansion.rows = RowsOf(request);
    record_.request_bytes = call->request().size();
    const auto now = std::chrono::system_clock::now();
    const auto longest = now + std::chrono::milliseconds(offload->options_.timeout_ms);
    const auto left = call->deadline() - scheduling::Clock::now();
    const auto half =
        now + std::chrono::duration_cast<std::chrono::system_clock::duration>(left) / 2;
    context_.set_deadline(std::min(longest, half));
    const grpc_compression_algorithm compression = AlgorithmOf(call->request().compression());
    if (compression != GRPC_COMPRESS_NONE) context_.set_compression_algorithm(compression);
    context_.AddMetadata(kSentOnBy, offload->id_);
    reader_ = offload->stub_.PrepareUnaryCall(&context_, kPredict, ToGrpc(call->request()),
                                              &offload->answers_);
    reader_->StartCall();
    reader_->Finish(&answer_, &status_, this);
  }

 public:
  void Ended() {
    *call_->response() = FromGrpc(answer_);
    if (status_.ok()) CheckAnswer();
    offload_->backend_.metrics->RecordOffload(status_.ok());
    offload_->Leave(status_, started_);
    if (status_.ok()) {
      Answer();
    } else {
      call_->response()->Clear();
      (new PredictCall(kPredictCodec, call_, offload_->backend_))->Submit();
    }
    delete this;
  }

 private:
  // One that no client could read counts as none.
  void CheckAnswer() {
    const Bytes received = call_->response()->bytes();
    Malformed malformed;
    const bool is_response =
        CheckMessage(Reader(received), kPredictResponse, kMaxDepth, &malformed);
    if (is_response) return;
    const Status status = MalformedError("PredictResponse", malformed, received.size());
    status_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, status.message);
  }

  void Answer() {
    record_.response_bytes = call_->response()->size();
    record_.latency = std::chrono::steady_clock::now() - started_;
    const Status status = call_->CountResponse(call_->response()->size());
    record_.code = status.code;
    offload_->backend_.metrics->Record(record_);
    call_->Finish(status);
  }

  Offload* const offload_;
  Call* const call_;
  const std::shared_ptr<const inference::Servable> servable_;  // the record's names are its
  const std::chrono::steady_clock::time_point started_;
  metrics::RequestRecord record_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer answer_;
  grpc::Status status_;
};

Offload::Offload(const Options& options, const Backend& backend)
    : options_(options),
      backend_(backend),
      id_(RandomId()),
      stub_(Connect(options.target)),
      thread_([this] { Run(); }),
      circuit_(std::chrono::milliseconds(options.timeout_ms), kPause) {}

Offload::~Offload() {
  answers_.Shutdown();
  thread_.join();
}

void Offload::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (answers_.Next(&tag, &ok)) static_cast<OffloadedCall*>(tag)->Ended();
}

bool Offload::Take(Call* call) {
  if (WasSentOn(*call) || !MayTake()) return false;
  thread_local Peek peek;
  std::shared_ptr<const inference::Servable> servable;
  const bool taken = peek.Read(call->request(), backend_.max_request_columns) &&
                     RowsOf(peek.request) >= options_.rows &&
                     backend_.models->Find(peek.request.model_spec(), &servable).ok();
  if (taken) {
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    new OffloadedCall(this, call, peek.request, std::move(servable));
  }
  peek.message.Clear();
  return taken;
}

bool Offload::MayTake() const {
  if (leads_here_.load(std::memory_order_relaxed)) return false;
  const OffloadCircuit::State state = circuit_.At(Clock::now());
  const int most = state == OffloadCircuit::State::kAnswers     ? options_.max_in_flight
                   : state == OffloadCircuit::State::kMayAnswer ? 1
                                                                : 0;
  return in_flight_.load(std::memory_order_relaxed) < most;
}

bool Offload::WasSentOn(const Call& call) {
  const std::optional<std::string> id = call.Metadata(kSentOnBy);
  if (id == id_ && !leads_here_.exchange(true)) {
    LogError("--offload_target: " + options_.target +
             " is this server itself; all requests run here");
  }
  return id.has_value();
}

void Offload::Leave(const grpc::Status& status, Clock::time_point started) {
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  bool lost = false;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    lost = circuit_.TimedOut(started, Clock::now());
  } else if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    lost = circuit_.Failed(Clock::now());
  } else if (circuit_.Answered()) {
    LogInfo("--offload_target: " + options_.target + " answers again");
  }
  if (lost) {
    LogWarning("--offload_target: " + options_.target + " does not answer (" +
               status.error_message() + "); its requests run here");
  }
}

}  // namespace colcast::rpc
