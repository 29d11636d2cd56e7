#include "server/rpc/predict_call.h"

#include <absl/base/thread_annotations.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/base/out_of_memory.h"
#include "server/http2/inflate.h"
#include "server/inference/request_message.h"
#include "server/inference/signature.h"
#include "server/predict_record.h"
#include "server/wire/infer_request.h"
#include "server/wire/infer_response.h"
#include "server/wire/predict_request.h"

namespace colcast::rpc {
namespace {

using scheduling::Clock;

// Larger messages are not decoded before a worker takes them, nor compressed ones that inflate to
// more than the second: that takes a millisecond.
constexpr size_t kMaxDescribedBytes = 4 << 20;
constexpr size_t kMaxInflatedBytes = 256 << 10;

// What a message of so many bytes and columns decodes to is kept while it waits: at most about a
// megabyte. Others are decoded again by the worker that takes them.
constexpr size_t kMaxKeptBytes = 64 << 10;
constexpr size_t kMaxKeptColumns = 1024;

// As many as are kept for later, and the messages that they held: what a message decodes to may
// take many times as much, and stays with what it was decoded into.
constexpr size_t kMaxSpare = 256;
constexpr size_t kMaxSpareBytes = 16 << 20;

}  // namespace

const PredictCodec kPredictCodec = {
    "Predict",           DecodePredictRequest, DecodePredictRequest, CheckPredictResponse,
    PredictResponseSize, WritePredictResponse};
const PredictCodec kInferCodec = {"ModelInfer",       DecodeInferRequest, DecodeInferSizes,
                                  CheckInferResponse, InferResponseSize,  WriteInferResponse};

// What a request is read into. Those that are done with are kept, so that decoding does not
// allocate.
struct PredictCall::Scratch {
  DecodedRequest request;
  size_t most_bytes = 0;  // of a message so far
};

// Decoded requests change threads: who reads calls fills what workers give back.
class PredictCall::Spare {
 public:
  // Those for messages of so many bytes. Apart, so that what waits never holds what a large one has
  // left behind.
  static Spare& For(size_t bytes) {
    static Spare* const small = new Spare;
    static Spare* const large = new Spare;
    return bytes <= kMaxKeptBytes ? *small : *large;
  }

  std::unique_ptr<Scratch> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.empty()) return std::make_unique<Scratch>();
    std::unique_ptr<Scratch> scratch = std::move(spare_.back());
    spare_.pop_back();
    bytes_ -= scratch->most_bytes;
    return scratch;
  }

  void GiveBack(std::unique_ptr<Scratch> scratch) {
    scratch->request.Clear();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.size() == kMaxSpare || scratch->most_bytes > kMaxSpareBytes - bytes_) return;
    bytes_ += scratch->most_bytes;
    spare_.push_back(std::move(scratch));
  }

 private:
  Spare() { spare_.reserve(kMaxSpare); }  // giving back needs no memory

  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> spare_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // their most_bytes, at most kMaxSpareBytes
};

PredictCall::PredictCall(const PredictCodec& codec, Call* call, const Backend& backend)
    : WorkerCall(codec.api, call, backend), codec_(codec) {}

PredictCall::~PredictCall() { GiveBack(); }

void PredictCall::GiveBack() {
  if (scratch_ != nullptr) Spare::For(scratch_->most_bytes).GiveBack(std::move(scratch_));
}

Status PredictCall::Decode(decltype(PredictCodec::decode) decode) {
  const size_t bytes = WorkerCall::request().size();
  scratch_ = Spare::For(bytes).Take();
  scratch_->most_bytes = std::max(scratch_->most_bytes, bytes);
  return decode(WorkerCall::request().bytes(), &scratch_->request, backend().max_request_columns);
}

void PredictCall::Describe(scheduling::JobProfile* profile) {
  if (WorkerCall::request().compression() != http2::Compression::kNone)
    return DescribeInflated(profile);
  const size_t bytes = WorkerCall::request().size();
  if (bytes > kMaxDescribedBytes) return;
  const bool may_keep = bytes <= kMaxKeptBytes;
  const Status status = WithinMemory([&] {
    Status read = Decode(may_keep ? codec_.decode : codec_.decode_sizes);
    if (read.ok()) read = FindServable(scratch_->request.model_spec());
    if (read.ok()) inference::DescribePredict(scratch_->request, servable(), profile);
    return read;
  });
  if (!status.ok()) *profile = {};
  const bool is_kept =
      status.ok() && may_keep && scratch_->request.column_count() <= kMaxKeptColumns;
  if (!is_kept) GiveBack();
}

void PredictCall::DescribeInflated(scheduling::JobProfile* profile) {
  const Message as_it_came = WorkerCall::request();
  Message message = as_it_came;
  if (!http2::Inflate(kMaxInflatedBytes, &message).ok()) return;
  set_request(message);
  Describe(profile);
  if (scratch_ == nullptr) set_request(as_it_came);  // and waits so
}

void PredictCall::Run(Clock::duration waited, std::vector<scheduling::Taken>* companions) {
  inference::RunPredict(this, waited, *companions, backend().workers);
}

Status PredictCall::Read() {
  if (Status status = Prepare(); !status.ok()) return status;
  if (scratch_ == nullptr) {
    if (Status status = Decode(codec_.decode); !status.ok()) return status;
  }
  const ModelSpec& spec = scratch_->request.model_spec();
  if (!has_servable()) {
    if (Status status = FindServable(spec); !status.ok()) return status;
  }
  return inference::CheckMethodName(servable(), spec.signature_name, backend().calls);
}

const DecodedRequest& PredictCall::request() const { return scratch_->request; }

DecodedRequest* PredictCall::mutable_request() { return &scratch_->request; }

void PredictCall::Finish(const Status& status, const engine::Outputs* outputs,
                         const inference::PredictStats& stats) {
  EnterStats(stats, record());
  if (stats.unknown_keys > 0) {
    AddTrailer("x-colcast-unknown-keys", std::to_string(stats.unknown_keys));
  }
  if (!status.ok()) {
    Answer(status);
    return;
  }
  record()->expansion = outputs->expansion();
  outputs_ = outputs;
  Status written = WithinMemory([&] { return Respond(*outputs); });
  if (written.ok()) Shadow(*outputs);
  Answer(std::move(written));
}

void PredictCall::Shadow(const engine::Outputs& outputs) const {
  auto shadow = backend().shadows->Draw(servable());
  if (shadow == nullptr) return;
  std::string message;
  Status made;
  if (!CameAsPredict()) {
    made = WithinMemory([&] {
      message = inference::ToPredictRequest(request()).SerializeAsString();
      return OkStatus();
    });
  }
  if (!made.ok()) {
    return backend().shadows->counts().CountNotRun(servable().name(), shadow::NotRun::kNoMemory);
  }
  backend().shadows->Add(std::move(shadow), servable(),
                         CameAsPredict() ? WorkerCall::request().bytes() : Bytes(message),
                         outputs.columns());
}

// Logs hold Predict's messages.
void PredictCall::Log(const std::shared_ptr<request_log::RequestLogs::Model>& log) const {
  if (CameAsPredict()) return WorkerCall::Log(log);
  static_cast<void>(WithinMemory([&] {
    const std::string sent = inference::ToPredictRequest(request()).SerializeAsString();
    const PredictResponse answer = ResponseOf(*outputs_);
    std::string answered(PredictResponseSize(answer), '\0');
    WritePredictResponse(answer, reinterpret_cast<uint8_t*>(answered.data()));
    AddToLog(log, Bytes(sent), Bytes(answered));
    return OkStatus();
  }));
}

PredictResponse PredictCall::ResponseOf(const engine::Outputs& outputs) const {
  const ModelSpec& spec = request().model_spec();
  PredictResponse response;
  response.model_name = spec.name;
  response.signature_name = inference::SignatureNameOf(spec.signature_name);
  response.version = servable().version();
  response.id = request().id();
  response.outputs = outputs.columns();
  response.encoding = backend().encoding;
  return response;
}

Status PredictCall::Respond(const engine::Outputs& outputs) {
  const PredictResponse message = ResponseOf(outputs);
  if (Status status = codec_.check(message); !status.ok()) return status;
  const size_t bytes = codec_.size(message);
  if (Status status = CountResponse(bytes); !status.ok()) return status;
  const std::shared_ptr<uint8_t[]> written(new uint8_t[bytes]);
  codec_.write(message, written.get());
  response()->Append(written, written.get(), bytes);
  return OkStatus();
}

}  // namespace colcast::rpc
