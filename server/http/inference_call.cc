#include <string>
#include <utility>

#include "server/base/out_of_memory.h"
#include "server/http/example_json.h"
#include "server/http/gzip.h"
#include "server/http/json_response.h"
#include "server/http/model_api.h"
#include "server/http/predict_json.h"
#include "server/http/request_message.h"
#include "server/inference/classify.h"
#include "server/inference/predict_run.h"
#include "server/inference/regress.h"
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
  if (method == RestMethod::kClassify) return "Classify";
  return method == RestMethod::kRegress ? "Regress" : "Predict";
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

// Owns itself: gone once it has answered.
//
// What a body asks for is known when a worker has parsed it. A request to Predict that may run with
// others and finds some waiting then waits once more, in the place it had.
class InferenceCall final : public scheduling::Job, public inference::PredictMember {
 public:
  InferenceCall(const Backend& backend, const ModelApiOptions& options, RestCall call,
                std::shared_ptr<Exchange> exchange)
      : backend_(backend),
        options_(options),
        call_(std::move(call)),
        exchange_(std::move(exchange)),
        received_(Clock::now()) {
    record_.api = ApiName(call_.method);
    record_.entrypoint = "REST";
    record_.request_bytes = exchange_->request().body.size();
  }

  Clock::time_point deadline() const override {
    return options_.timeout.count() > 0 ? received_ + options_.timeout : Clock::time_point::max();
  }
  bool cancelled() const override { return exchange_->cancelled(); }

  void Describe(scheduling::JobProfile* profile) override {
    if (parsed_) inference::DescribePredict(request_, *servable_, profile);
  }

  void Run(Clock::duration waited, std::vector<scheduling::Taken>* companions) override {
    if (!parsed_) {
      record_.queue_wait = waited;
      const Status status = WithinMemory([this] { return Parse(); });
      if (!status.ok()) return Answer(status, "");
      parsed_ = true;
      if (call_.method != RestMethod::kPredict) return InferExamples();
      if (backend_.workers->SubmitAgain(this, waited)) return;
    }
    inference::RunPredict(this, waited, *companions, backend_.workers);
  }

  void Drop(scheduling::DropReason reason) override { Answer(scheduling::DropStatus(reason), ""); }

  // PredictMember
  scheduling::Job* job() override { return this; }
  Status Read() override { return OkStatus(); }
  const DecodedRequest& request() const override { return request_; }
  const inference::Servable& servable() const override { return *servable_; }
  void Finish(const Status& status, const engine::Outputs* outputs,
              const inference::PredictStats& stats) override {
    EnterStats(stats, &record_);
    if (!status.ok()) return Answer(status, "");
    record_.expansion = outputs->expansion();
    std::string json;
    const Status written =
        WithinMemory([&] { return WriteOutputs(outputs->columns(), format_, &json); });
    if (written.ok() && log_ != nullptr) {
      Log(ToPredictRequest(request_),
          Serialized({servable_->name(), record_.signature_name, servable_->version(),
                      outputs->columns(), backend_.encoding}));
    }
    Answer(written, std::move(json));
  }

 private:
  Status Parse() {
    Request& request = exchange_->request();
    text_ = std::move(request.body);
    if (request.gzip) {
      const std::string compressed = std::move(text_);
      if (Status status = Gunzip(compressed, options_.max_body_bytes, &text_); !status.ok()) {
        too_large_ = status.code == StatusCode::kResourceExhausted;
        return status;
      }
    }
    if (Status status = ParseObject(&text_, &body_); !status.ok()) return status;
    std::string& signature_name = call_.model.signature_name;
    if (Status status = ReadSignatureName(body_, &signature_name); !status.ok()) return status;
    if (Status status = backend_.models->Find(call_.model, &servable_); !status.ok()) {
      return status;
    }
    record_.model_name = servable_->name();
    record_.signature_name = servable_->SignatureLabel(signature_name);
    log_ = backend_.request_logs->Sample(record_.model_name);
    if (call_.method != RestMethod::kPredict) return OkStatus();
    const tensorflow::SignatureDef* signature = nullptr;
    if (Status status = inference::FindSignature(
            *servable_, inference::SignatureNameOf(signature_name), &signature);
        !status.ok()) {
      return status;
    }
    request_.mutable_model_spec()->name = servable_->name();
    request_.mutable_model_spec()->signature_name = signature_name;
    return ReadInputs(body_, *signature, &format_, &request_);
  }

  void InferExamples() {
    std::string json;
    const Status status = WithinMemory([&] {
      return call_.method == RestMethod::kClassify
                 ? InferExamples<ClassificationRequest, ClassificationResponse>(inference::Classify,
                                                                                body_, &json)
                 : InferExamples<RegressionRequest, RegressionResponse>(inference::Regress, body_,
                                                                        &json);
    });
    Answer(status, std::move(json));
  }

  template <typename Request, typename Response>
  Status InferExamples(Status (*infer)(const inference::Servable&, const Request&,
                                       const ExampleInput&, const inference::CallOptions&,
                                       Response*, inference::CallStats*),
                       const rapidjson::Value& body, std::string* json) {
    std::string bytes;
    ExampleInput input;
    if (Status status = ReadExamples(body, backend_.calls.max_request_rows, &bytes, &input);
        !status.ok()) {
      return status;
    }
    Request request;
    request.mutable_model_spec()->set_signature_name(call_.model.signature_name);
    Response response;
    inference::CallStats stats;
    const Status status = infer(*servable_, request, input, backend_.calls, &response, &stats);
    record_.runtime = stats.runtime;
    record_.expansion = stats.expansion;
    if (!status.ok()) return status;
    if (log_ != nullptr) {
      request.mutable_model_spec()->set_name(servable_->name());
      *request.mutable_input() = ToInput(input);
      Log(request, response.SerializeAsString());
    }
    *json = ResultsOf(response);
    return status;
  }

  // `response` is what gRPC would have answered.
  void Log(const google::protobuf::Message& request, const std::string& response) const {
    const std::string sent = request.SerializeAsString();
    backend_.request_logs->Add(log_, {record_.api, record_.model_name, servable_->version(),
                                      record_.signature_name, Bytes(sent), Bytes(response)});
  }

  void Answer(const Status& status, std::string json) {
    Response response;
    response.body = std::move(json);
    if (!status.ok()) {
      // Trying again, as 429 would have it, does not make a body smaller.
      response = too_large_ ? ErrorResponse(413, status.message) : ErrorResponse(status);
    }
    record_.code = status.code;
    record_.latency = Clock::now() - received_;
    record_.response_bytes = response.body.size();
    backend_.metrics->Record(record_);
    exchange_->Answer(std::move(response));
    delete this;
  }

  const Backend& backend_;
  const ModelApiOptions options_;
  RestCall call_;
  const std::shared_ptr<Exchange> exchange_;
  const Clock::time_point received_;
  std::shared_ptr<const inference::Servable> servable_;  // the record's names are its
  metrics::RequestRecord record_;
  std::shared_ptr<request_log::RequestLogs::Model> log_;  // null: this one is not logged
  bool too_large_ = false;
  bool parsed_ = false;
  std::string text_;  // of the body; what follows points into it
  rapidjson::Document body_;
  DecodedRequest request_;
  JsonFormat format_ = JsonFormat::kRows;
};

}  // namespace

void RunInference(const Backend& backend, const ModelApiOptions& options, RestCall call,
                  std::shared_ptr<Exchange> exchange) {
  backend.workers->Submit(
      new InferenceCall(backend, options, std::move(call), std::move(exchange)));
}

}  // namespace colcast::http
