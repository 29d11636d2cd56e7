#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/base/out_of_memory.h"
#include "server/base/thread_priority.h"
#include "server/caller_record.h"
#include "server/callers/callers.h"
#include "server/http/example_json.h"
#include "server/http/infer_json.h"
#include "server/http/json_response.h"
#include "server/http/model_api.h"
#include "server/http/predict_json.h"
#include "server/inference/classify.h"
#include "server/inference/predict_run.h"
#include "server/inference/regress.h"
#include "server/inference/request_message.h"
#include "server/inference/run_gate.h"
#include "server/inference/signature.h"
#include "server/predict_record.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::http {
namespace {

using scheduling::Clock;
using tensorflow::serving::ClassificationRequest;
using tensorflow::serving::ClassificationResponse;
using tensorflow::serving::RegressionRequest;
using tensorflow::serving::RegressionResponse;

const char* ApiName(RestMethod method) {
  return method == RestMethod::kClassify ? "Classify" : "Regress";
}

std::unique_ptr<PredictForm> MakeForm(RestMethod method, const Backend& backend, Request* request,
                                      RequestMemory* memory) {
  if (method != RestMethod::kInfer) return std::make_unique<PredictJson>(memory);
  return std::make_unique<InferJson>(std::move(request->inference_header_length),
                                     backend.max_request_columns, memory);
}

std::string ResultsOf(const ClassificationResponse& response) {
  return WriteClassifications(response.result());
}
std::string ResultsOf(const RegressionResponse& response) {
  return WriteRegressions(response.result());
}

std::string Serialized(const PredictResponse& response) {
  std::string bytes(PredictResponseSize(response), '\0');
  WritePredictResponse(response, reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes;
}

// More of a body, once inflated, would keep a worker for longer than most models do.
constexpr size_t kMostForWorkers = 512 << 10;

// How fast bodies are read, roughly, to have the shorter ones read first.
constexpr size_t kBytesPerMicrosecond = 50;

// Owns itself: gone once it has answered.
//
// What a body asks for is known when it has been read, by a worker if it is short, otherwise by a
// parser. A request to Predict that may run with others and finds some waiting then waits once
// more, in the place it had; and so does one that a parser has read.
class InferenceCall final : public scheduling::Job, public inference::PredictMember {
 public:
  InferenceCall(ModelApi* api, RestCall call, std::shared_ptr<Exchange> exchange)
      : api_(*api),
        backend_(api->backend),
        call_(std::move(call)),
        exchange_(std::move(exchange)),
        received_(Clock::now()),
        memory_(std::move(exchange_->request().memory)),
        body_(std::move(exchange_->request().body)),
        predict_(MakeForm(call_.method, backend_, &exchange_->request(), memory_.get())),
        examples_(memory_.get()) {
    record_.api = Predicts() ? predict_->api() : ApiName(call_.method);
    record_.entrypoint = "REST";
    record_.request_bytes = body_.size();
    if (backend_.tracer != nullptr) {
      trace_ = backend_.tracer->Start(exchange_->request().traceparent);
    }
    if (backend_.callers != nullptr) {
      caller_.emplace(backend_.callers, exchange_->request().caller);
    }
  }

  void Start() {
    if (!exchange_->request().has_body) return AnswerWithoutBody();
    if (body_.size() > kMostForWorkers) return GiveToParsers();
    backend_.workers->Submit(this);
  }

  // Of waiting: how long a parser takes, which gives way to others, does not count.
  Clock::time_point deadline() const override {
    const auto timeout = api_.options.timeout;
    return timeout.count() > 0 ? received_ + parsing_ + timeout : Clock::time_point::max();
  }
  bool cancelled() const override { return exchange_->cancelled(); }
  uint64_t client() const override {
    const uint64_t caller = caller_ ? caller_->client() : 0;
    return caller != 0 ? caller : exchange_->client();
  }

  void Describe(scheduling::JobProfile* profile) override {
    if (stage_ == Stage::kRead)
      return inference::DescribePredict(predict_->request(), *servable_, profile);
    if (stage_ == Stage::kForParsers) {
      profile->cost = std::chrono::microseconds(body_.size() / kBytesPerMicrosecond);
    }
  }

  void Run(Clock::duration waited, std::vector<scheduling::Taken>* companions) override {
    const bool by_parser = stage_ == Stage::kForParsers;
    if (stage_ != Stage::kRead) {
      record_.queue_wait = waited;
      const Clock::time_point start = Clock::now();
      if (!Parse(by_parser)) return;
      if (by_parser) parsing_ = Clock::now() - start;
      if (by_parser) return backend_.workers->Submit(this);
      if (Predicts() && backend_.workers->SubmitAgain(this, waited)) {
        return;
      }
    }
    if (!Predicts()) return InferExamples(waited);
    inference::RunPredict(this, waited, *companions, backend_.workers);
  }

  void Drop(scheduling::DropReason reason) override { Answer(scheduling::DropStatus(reason)); }

  // PredictMember
  scheduling::Job* job() override { return this; }
  engine::RunObserver* observer() const override { return trace_.get(); }
  Status Read() override { return OkStatus(); }
  const DecodedRequest& request() const override { return predict_->request(); }
  DecodedRequest* mutable_request() override { return &predict_->request(); }
  const inference::Servable& servable() const override { return *servable_; }
  void Finish(const Status& status, const engine::Outputs* outputs,
              const inference::PredictStats& stats) override {
    EnterStats(stats, &record_);
    if (!status.ok()) return Answer(status);
    record_.expansion = outputs->expansion();
    const PredictResponse answer = {servable_->name(),    record_.signature_name,
                                    servable_->version(), predict_->request().id(),
                                    outputs->columns(),   backend_.encoding};
    Response response;
    const Status written = WithinMemory([&] { return predict_->Write(answer, &response); });
    if (written.ok() && log_ != nullptr) {
      Log(inference::ToPredictRequest(predict_->request()), Serialized(answer));
    }
    if (written.ok()) Shadow(*outputs);
    Answer(written, std::move(response));
  }

 private:
  enum class Stage { kForWorkers, kForParsers, kRead };

  bool Predicts() const {
    return call_.method == RestMethod::kPredict || call_.method == RestMethod::kInfer;
  }

  void GiveToParsers() {
    stage_ = Stage::kForParsers;
    api_.parsers.Submit(this);
  }

  // The model was not served when the request came.
  void AnswerWithoutBody() {
    const Status status = backend_.models->Find(call_.model, &servable_);
    Answer(status.ok() ? Unavailable("the model was not served yet when the request came; send it ",
                                     "again")
                       : status);
  }

  // Reads the body and lets it go. False if the call is not this thread's any more.
  bool Parse(bool by_parser) {
    if (by_parser) LowerPriorityOnce();
    BodyBytes body{body_.slices(), exchange_->request().gzip, api_.options.max_body_bytes};
    const bool may_be_long = body.gzip && !by_parser && body.max_bytes > kMostForWorkers;
    if (may_be_long) body.max_bytes = kMostForWorkers;
    const Status status = WithinMemory([&] {
      try {
        return ReadBody(body);
      } catch (const OverMemoryLimit&) {
        return memory_->Refusal(&too_large_);
      }
    });
    if (inflates_too_far_ && may_be_long) {
      GiveToParsers();
      return false;
    }
    if (!status.ok()) {
      Answer(status);
      return false;
    }
    if (!predict_->keeps_body()) body_.Clear();
    stage_ = Stage::kRead;
    return true;
  }

  static void LowerPriorityOnce() {
    thread_local const bool lowered = [] {
      LowerThisThreadsPriority();
      return true;
    }();
    static_cast<void>(lowered);
  }

  Status ReadBody(const BodyBytes& body) {
    inflates_too_far_ = false;
    if (Status status = backend_.models->Find(call_.model, &servable_); !status.ok()) {
      return status;
    }
    record_.model_name = servable_->name();
    record_.model_version = servable_->version();
    const bool predict = Predicts();
    Status status = predict
                        ? predict_->Read(body,
                                         [this](const std::string& name, const auto** signature) {
                                           return FindSignature(name, signature);
                                         })
                        : examples_.Read(body, backend_.calls.max_request_rows);
    inflates_too_far_ = body.gzip && status.code == StatusCode::kResourceExhausted;
    // Trying again, as 429 would have it, does not make a body smaller.
    too_large_ = inflates_too_far_;
    call_.model.signature_name = predict ? predict_->signature_name() : examples_.signature_name();
    record_.signature_name = servable_->SignatureLabel(call_.model.signature_name);
    if (!status.ok()) return status;
    log_ = backend_.request_logs->Sample(record_.model_name);
    predict_->request().mutable_model_spec()->name = servable_->name();
    predict_->request().mutable_model_spec()->signature_name = call_.model.signature_name;
    return predict ? status : examples_.examples_status();
  }

  // With the keys of item tables among its inputs.
  Status FindSignature(const std::string& name, const tensorflow::SignatureDef** signature) {
    Status status =
        inference::FindSignature(*servable_, inference::SignatureNameOf(name), signature);
    if (!status.ok() || servable_->items() == nullptr) return status;
    with_keys_ = **signature;
    servable_->items()->AddKeys(&with_keys_);
    *signature = &with_keys_;
    return status;
  }

  void InferExamples(Clock::duration waited) {
    inference::RunGate gate(backend_.workers);
    Response response;
    std::string* const json = &response.body;
    const Status status = WithinMemory([&] {
      return call_.method == RestMethod::kClassify
                 ? InferExamples<ClassificationRequest, ClassificationResponse>(inference::Classify,
                                                                                &gate, json)
                 : InferExamples<RegressionRequest, RegressionResponse>(inference::Regress, &gate,
                                                                        json);
    });
    if (gate.must_wait()) return gate.Wait(this, waited);
    Answer(status, std::move(response));
  }

  template <typename Request, typename Response>
  Status InferExamples(Status (*infer)(const inference::Servable&, const Request&,
                                       const ExampleInput&, const inference::CallOptions&,
                                       Response*, inference::CallStats*),
                       inference::RunGate* gate, std::string* json) {
    const ExampleInput& input = examples_.input();
    Request request;
    request.mutable_model_spec()->set_signature_name(call_.model.signature_name);
    Response response;
    inference::CallStats stats;
    inference::CallOptions options = backend_.calls;
    options.gate = gate;
    const Status status = infer(*servable_, request, input, options, &response, &stats);
    record_.run_start = stats.run_start;
    record_.runtime = stats.runtime;
    record_.expansion = stats.expansion;
    if (!status.ok()) return status;
    if (log_ != nullptr) {
      request.mutable_model_spec()->set_name(servable_->name());
      *request.mutable_input() = inference::ToInput(input);
      Log(request, response.SerializeAsString());
    }
    *json = ResultsOf(response);
    return status;
  }

  // Has a shadow version run the request, too, if it is drawn.
  void Shadow(const engine::Outputs& outputs) const {
    auto shadow = backend_.shadows->Draw(*servable_);
    if (shadow == nullptr) return;
    std::string message;
    const Status made = WithinMemory([&] {
      message = inference::ToPredictRequest(predict_->request()).SerializeAsString();
      return OkStatus();
    });
    if (!made.ok()) {
      return backend_.shadows->counts().CountNotRun(servable_->name(), shadow::NotRun::kNoMemory);
    }
    backend_.shadows->Add(std::move(shadow), *servable_, Bytes(message), outputs.columns());
  }

  // `response` is what gRPC would have answered.
  void Log(const google::protobuf::Message& request, const std::string& response) const {
    const std::string sent = request.SerializeAsString();
    backend_.request_logs->Add(log_, {record_.api, record_.model_name, servable_->version(),
                                      record_.signature_name, Bytes(sent), Bytes(response)});
  }

  void Answer(const Status& status, Response response = {}) {
    if (!status.ok()) {
      response = too_large_ ? ErrorResponse(413, status.message) : ErrorResponse(status);
    }
    record_.code = status.code;
    record_.latency = Clock::now() - received_;
    record_.response_bytes = response.body.size();
    backend_.metrics->Record(record_);
    if (caller_) CountFor(record_, &*caller_);
    if (trace_ != nullptr) backend_.tracer->Finish(*trace_, record_, received_);
    exchange_->Answer(std::move(response));
    delete this;
  }

  ModelApi& api_;
  const Backend& backend_;
  RestCall call_;
  const std::shared_ptr<Exchange> exchange_;
  const Clock::time_point received_;
  Clock::duration parsing_{};
  std::shared_ptr<const inference::Servable> servable_;  // the record's names are its
  metrics::RequestRecord record_;
  std::unique_ptr<tracing::RequestTrace> trace_;          // null: it is not sampled
  std::optional<callers::Caller> caller_;                 // nullopt: not told apart
  std::shared_ptr<request_log::RequestLogs::Model> log_;  // null: this one is not logged
  Stage stage_ = Stage::kForWorkers;
  bool inflates_too_far_ = false;
  bool too_large_ = false;
  const std::unique_ptr<RequestMemory> memory_;  // what follows counts in it
  SliceBuffer body_;
  tensorflow::SignatureDef with_keys_;
  const std::unique_ptr<PredictForm> predict_;
  ExamplesJson examples_;
};

}  // namespace

void RunInference(ModelApi* api, RestCall call, std::shared_ptr<Exchange> exchange) {
  (new InferenceCall(api, std::move(call), std::move(exchange)))->Start();
}

}  // namespace colcast::http
