#include <memory>
#include <utility>

#include "server/api/examples_call.h"
#include "server/api/predict_call.h"
#include "server/base/thread_priority.h"
#include "server/http/json_codecs.h"
#include "server/http/model_api.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::http {
namespace {

using scheduling::Clock;

// Reading a larger body, counted after decompression, would occupy a worker for longer than most
// models do.
constexpr size_t kMostForWorkers = 512 << 10;

// A rough speed of reading bodies, used to read shorter ones first.
constexpr size_t kBytesPerMicrosecond = 50;

void LowerPriorityOnce() {
  thread_local const bool lowered = [] {
    LowerThisThreadsPriority();
    return true;
  }();
  static_cast<void>(lowered);
}

// Reads the body of a REST call: a short one on a worker, a long one on a low-priority parser. The
// call then runs or is queued: after a parser as a new job, after a worker in its original place if
// it may run with others. Owns itself until then.
class BodyJob final : public scheduling::Job {
 public:
  // `body` is the call's codec.
  BodyJob(ModelApi* api, JsonBody* body, api::Call* call) : api_(*api), body_(*body), call_(call) {}

  void Start() {
    if (!body_.rest().request().has_body) return End(NoBody());
    Submit(body_.body_bytes() > kMostForWorkers);
  }

  Clock::time_point deadline() const override { return call_->deadline(); }
  bool cancelled() const override { return call_->cancelled(); }
  uint64_t client() const override { return call_->client(); }
  void Describe(scheduling::JobProfile* profile) override {
    if (by_parser_) {
      profile->cost = std::chrono::microseconds(body_.body_bytes() / kBytesPerMicrosecond);
    }
  }
  void Drop(scheduling::DropReason reason) override { End(DropStatus(reason)); }

  void Run(Clock::duration waited, std::vector<scheduling::Taken>* companions) override {
    call_->call_record().queue_wait = waited;
    if (by_parser_) LowerPriorityOnce();
    const Clock::time_point start = Clock::now();
    const size_t max_bytes = api_.options.max_body_bytes;
    const bool may_be_long =
        body_.rest().request().gzip && !by_parser_ && max_bytes > kMostForWorkers;
    bool inflates_too_far = false;
    const Status status =
        body_.ReadBody(call_, may_be_long ? kMostForWorkers : max_bytes, &inflates_too_far);
    if (inflates_too_far && may_be_long) return Submit(/*to_parsers=*/true);
    if (!status.ok()) return End(status);
    const std::unique_ptr<BodyJob> gone(this);
    scheduling::WorkerPool* const workers = api_.backend.workers;
    if (by_parser_) {
      body_.rest().Extend(Clock::now() - start);
      return workers->Submit(call_);
    }
    if (!workers->SubmitAgain(call_, waited)) call_->Run(waited, companions);
  }

 private:
  void Submit(bool to_parsers) {
    by_parser_ = to_parsers;
    to_parsers ? api_.parsers.Submit(this) : api_.backend.workers->Submit(this);
  }

  // For a request whose model was not served when it arrived, so that its body was skipped.
  Status NoBody() {
    const Status status = call_->FindServable(body_.model());
    if (!status.ok()) return status;
    return Unavailable("the model was not served yet when the request came; send it again");
  }

  void End(const Status& status) {
    call_->Answer(status);
    delete this;
  }

  ModelApi& api_;
  JsonBody& body_;  // owned by the call
  api::Call* const call_;
  bool by_parser_ = false;
};

}  // namespace

void RunInference(ModelApi* api, RestCall call, std::shared_ptr<Exchange> exchange) {
  const auto timeout = api->options.timeout;
  if (call.method == RestMethod::kPredict || call.method == RestMethod::kInfer) {
    auto codec = std::make_unique<JsonPredict>(std::move(exchange), timeout, call,
                                               api->backend.max_request_columns);
    JsonBody* const body = codec.get();
    (new BodyJob(api, body, new api::PredictCall(std::move(codec), api->backend)))->Start();
  } else {
    auto codec = std::make_unique<JsonExamples>(std::move(exchange), timeout, call);
    JsonBody* const body = codec.get();
    (new BodyJob(api, body, new api::ExamplesCall(std::move(codec), api->backend)))->Start();
  }
}

}  // namespace colcast::http
