#include "server/rpc/offload.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "server/base/log.h"
#include "server/http2/grpc.h"
#include "server/inference/servable.h"
#include "server/metrics/metrics.h"
#include "server/rpc/wire_calls.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace colcast::rpc {

OffloadCircuit::State OffloadCircuit::At(Time now) const {
  const Clock::rep until = left_alone_until_.load(std::memory_order_relaxed);
  if (until == 0) return State::kAnswers;
  return now.time_since_epoch().count() < until ? State::kLeftAlone : State::kMayAnswer;
}

bool OffloadCircuit::Answered() {
  const std::lock_guard<std::mutex> lock(mutex_);
  waited_ = {};
  return left_alone_until_.exchange(0, std::memory_order_relaxed) != 0;
}

bool OffloadCircuit::Failed(Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return LeaveAlone(now);
}

bool OffloadCircuit::TimedOut(Time started, Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Calls that wait at the same time count that time once.
  waited_ += now - std::max(started, last_timeout_);
  last_timeout_ = now;
  return waited_ >= patience_ && LeaveAlone(now);
}

bool OffloadCircuit::LeaveAlone(Time now) {
  const Clock::rep until = (now + pause_).time_since_epoch().count();
  return left_alone_until_.exchange(until, std::memory_order_relaxed) == 0;
}

using http2::Message;

namespace {

constexpr char kPredictPath[] = "/tensorflow.serving.PredictionService/Predict";
// Metadata of a forwarded call: the id of the forwarding server.
constexpr char kSentOnBy[] = "colcast-sent-on-by";
constexpr std::chrono::seconds kPause{1};
// The limit for decompressing a request to learn its rows.
constexpr size_t kMaxInflatedBytes = 4 << 20;

std::string RandomId() {
  std::random_device random;
  return std::to_string(random()) + std::to_string(random());
}

// The largest first dimension of a request's inputs.
int64_t RowsOf(const DecodedRequest& request) {
  int64_t rows = 0;
  for (const Column& column : request.columns()) {
    if (!column.dims.empty()) rows = std::max(rows, column.dims.front());
  }
  return rows;
}

// Names and shapes of a request. Each thread reuses one.
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

// A call at the other server. Owns itself until the call has ended.
class OffloadedCall {
 public:
  OffloadedCall(Offload* offload, Call* call, const DecodedRequest& request,
                std::shared_ptr<const inference::Servable> servable)
      : offload_(offload), call_(call), servable_(std::move(servable)) {
    record_.api = "Predict";
    record_.entrypoint = "GRPC";
    record_.model_name = servable_->name();
    record_.signature_name = inference::LabelOf(servable_->Find(request.model_spec.signature_name));
    record_.expansion.rows = RowsOf(request);
    record_.request_bytes = call->request().size();
  }

  void Start() {
    const auto longest = started_ + std::chrono::milliseconds(offload_->options_.timeout_ms);
    const auto half = started_ + (call_->deadline() - started_) / 2;
    offload_->client_->Start(
        {kPredictPath, call_->request(), {{kSentOnBy, offload_->id_}}, std::min(longest, half)},
        [this](Status status, Message answer) { Ended(std::move(status), std::move(answer)); });
  }

 private:
  void Ended(Status status, Message answer) {
    if (offload_->ending_) {
      call_->Finish(Unavailable("the server is shutting down"));
    } else {
      if (status.ok()) status = CheckAnswer(answer);
      offload_->backend_.metrics->RecordOffload(status.ok());
      offload_->Leave(status, started_);
      if (status.ok()) {
        Answer(std::move(answer));
      } else {
        SubmitPredict(kPredict, call_, offload_->backend_);
      }
    }
    delete this;
  }

  // An answer that no client could parse counts as no answer.
  static Status CheckAnswer(const Message& answer) {
    tensorflow::serving::PredictResponse response;
    if (response.ParseFromString(answer.bytes().ToString())) return OkStatus();
    return Unavailable("malformed PredictResponse: protobuf cannot parse its ", answer.size(),
                       " bytes");
  }

  void Answer(Message answer) {
    *call_->response() = std::move(answer);
    record_.response_bytes = call_->response()->size();
    record_.latency = scheduling::Clock::now() - started_;
    const Status status = call_->CountResponse(call_->response()->size());
    record_.code = status.code;
    offload_->backend_.metrics->Record(record_);
    call_->Finish(status);
  }

  Offload* const offload_;
  Call* const call_;
  // Owns the names that the record refers to.
  const std::shared_ptr<const inference::Servable> servable_;
  const scheduling::Clock::time_point started_ = scheduling::Clock::now();
  metrics::CallRecord record_;
};

Offload::Offload(const Options& options, const Backend& backend)
    : options_(options),
      backend_(backend),
      id_(RandomId()),
      circuit_(std::chrono::milliseconds(options.timeout_ms), kPause),
      client_(std::make_unique<http2::Client>(options.target)) {}

Offload::~Offload() {
  Stop();
  client_.reset();
}

void Offload::Stop() {
  ending_ = true;
  client_->Stop();
}

bool Offload::Take(Call* call) {
  if (WasSentOn(*call) || !MayTake()) return false;
  thread_local Peek peek;
  std::shared_ptr<const inference::Servable> servable;
  const bool taken = peek.Read(call->request(), backend_.max_request_columns) &&
                     RowsOf(peek.request) >= options_.rows &&
                     backend_.models->Find(peek.request.model_spec, &servable).ok();
  if (taken) {
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    (new OffloadedCall(this, call, peek.request, std::move(servable)))->Start();
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
    LogError("--offload_target: " + options_.target.text() +
             " is this server itself; all requests run here");
  }
  return id.has_value();
}

void Offload::Leave(const Status& status, Clock::time_point started) {
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  bool lost = false;
  if (status.code == StatusCode::kDeadlineExceeded) {
    lost = circuit_.TimedOut(started, Clock::now());
  } else if (status.code == StatusCode::kUnavailable) {
    lost = circuit_.Failed(Clock::now());
  } else if (circuit_.Answered()) {
    LogInfo("--offload_target: " + options_.target.text() + " answers again");
  }
  if (lost) {
    LogWarning("--offload_target: " + options_.target.text() + " does not answer (" +
               status.message + "); its requests run here");
  }
}

}  // namespace colcast::rpc
