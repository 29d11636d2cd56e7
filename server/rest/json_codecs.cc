#include <string>
#include <string_view>
#include <utility>

#include "server/api/call.h"
#include "server/base/status.h"
#include "server/inference/example_run.h"
#include "server/inference/run.h"
#include "server/inference/servable.h"
#include "server/rest/example_json.h"
#include "server/rest/json_reader.h"
#include "server/rest/json_response.h"
#include "server/rest/model_api.h"
#include "server/rest/predict_json.h"
#include "server/wire/inflater.h"

namespace colcast::http {

namespace {

// The minimum size of the outputs as JSON.
size_t LeastBytes(const PredictResponse& response) {
  size_t bytes = 0;
  for (const OutputColumn& output : response.outputs) {
    const bool is_decimal = output.dtype == DT_FLOAT || output.dtype == DT_DOUBLE;  // "0.0,"
    bytes += static_cast<size_t>(output.ElementCount()) * (is_decimal ? 4 : 1);
  }
  return bytes;
}

Status InflateBody(const CountedBytes& compressed, size_t max_bytes, CountedBytes* text) {
  const Slice slice = {compressed.data(), compressed.size()};
  return Inflate(
      {&slice, 1}, max_bytes,
      [text](size_t size, uint8_t** room) {
        *room = text->Room(size);
        return OkStatus();
      },
      [text](size_t size) { text->Extend(size); });
}

// A call over HTTP. Its body is read before the call runs. `Base` is a codec class.
template <typename Base>
class JsonCodec : public Base {
 public:
  JsonCodec(const char* api, std::chrono::milliseconds timeout, ModelSpec model,
            std::shared_ptr<Exchange> exchange)
      : Base(OriginOf(api, timeout, exchange.get())),
        http_(std::move(exchange)),
        model_(std::move(model)),
        request_bytes_(http_->request().body.size()),
        memory_(std::move(http_->request().memory)),
        body_(std::move(http_->request().body)) {}

  bool cancelled() const override { return http_->cancelled(); }
  Status CheckClientReads(scheduling::Clock::time_point since) const override {
    return http_->CheckClientReads(since);
  }
  void Settle(metrics::CallRecord* record, Status* status) override {
    if (!status->ok()) {
      response_ = is_too_large_ ? ErrorResponse(413, status->message) : ErrorResponse(*status);
    }
    record->request_bytes = request_bytes_;
    record->response_bytes = response_.body.size();
  }
  void Send(const Status&) override { http_->Answer(std::move(response_)); }

  size_t body_bytes() const override { return body_.size(); }
  bool is_compressed() const override { return http_->request().gzip; }
  Status ReadBody(api::Call* call, size_t max_bytes, bool* inflates_too_far) override {
    *inflates_too_far = false;
    Status status = WithinMemory([&] {
      try {
        return ReadText(call, max_bytes, inflates_too_far);
      } catch (const OverMemoryLimit&) {
        return memory_->Refusal(&is_too_large_);
      }
    });
    if (status.ok()) body_.Clear();
    return status;
  }
  Status Read(api::Call*) override { return OkStatus(); }

  // The error of a call whose body was skipped, because its model was not served when the request
  // arrived.
  Status NoBody(api::Call* call) {
    if (Status status = call->FindServable(model_); !status.ok()) return status;
    return Unavailable("the model was not served yet when the request arrived; send it again");
  }

 protected:
  // Reads the request from the body and finds its signature. The call must have its servable.
  virtual Status Parse(std::string_view text, api::Call* call) = 0;

  const std::shared_ptr<Exchange> http_;
  Response response_;

 private:
  static api::Origin OriginOf(const char* api, std::chrono::milliseconds timeout,
                              Exchange* exchange) {
    api::Origin origin;
    origin.api = api;
    origin.entrypoint = "REST";
    if (timeout.count() > 0) origin.deadline = scheduling::Clock::now() + timeout;
    origin.is_deadline_ours = timeout.count() > 0;
    const uint64_t caller = scheduling::ClientOf(exchange->request().caller);
    origin.client = caller != 0 ? caller : exchange->client();
    origin.traceparent = exchange->request().traceparent;
    return origin;
  }

  Status ReadText(api::Call* call, size_t max_bytes, bool* inflates_too_far) {
    if (Status found = call->FindServable(model_); !found.ok()) return found;
    CountedBytes inflated(memory_.get());
    if (is_compressed()) {
      Status status = InflateBody(body_, max_bytes, &inflated);
      // Answers 413 instead of 429, because trying again does not make a body smaller.
      is_too_large_ = *inflates_too_far = status.code == StatusCode::kResourceExhausted;
      if (!status.ok()) return status;
    }
    const std::string_view text = is_compressed() ? inflated.Text() : body_.Text();
    return Parse(text, call);
  }

  const ModelSpec model_;
  const size_t request_bytes_;
  bool is_too_large_ = false;

 protected:
  // Counts the memory of the body and of the values that derived classes read from it.
  const std::unique_ptr<RequestMemory> memory_;

 private:
  CountedBytes body_;
};

class JsonPredict final : public JsonCodec<api::PredictCodec> {
 public:
  JsonPredict(std::chrono::milliseconds timeout, const RestCall& call,
              std::shared_ptr<Exchange> exchange)
      : JsonCodec("Predict", timeout, call.model, std::move(exchange)), json_(memory_.get()) {}

  void Describe(api::PredictCall* call, scheduling::JobProfile* profile) override {
    inference::DescribePredict(call, profile);
  }
  DecodedRequest& request() override { return json_.request(); }
  Status Write(const PredictResponse& response) override {
    Status status = http_->CountAnswer(LeastBytes(response));
    return status.ok() ? json_.Write(response, &response_) : status;
  }

 private:
  Status Parse(std::string_view text, api::Call* call) override {
    const inference::Servable& servable = call->found();
    // Finds a signature and adds the keys of item tables to its inputs.
    const auto find = [&](const std::string& name, const tensorflow::SignatureDef** signature) {
      const inference::Signature* const found = call->FindSignature(name);
      if (found == nullptr) return servable.NoSignature(name);
      *signature = found->def;
      if (servable.items() == nullptr) return OkStatus();
      with_keys_ = *found->def;
      servable.items()->AddKeys(&with_keys_);
      *signature = &with_keys_;
      return OkStatus();
    };
    Status status = json_.Read(text, call->backend().calls.max_request_rows, find);
    request().model_spec.name = servable.name();
    request().model_spec.signature_name = json_.signature_name();
    return status;
  }

  tensorflow::SignatureDef with_keys_;
  PredictJson json_;
};

class JsonExamples final : public JsonCodec<api::ExamplesCodec> {
 public:
  JsonExamples(std::chrono::milliseconds timeout, const RestCall& call,
               std::shared_ptr<Exchange> exchange)
      : JsonCodec(call.method == RestMethod::kClassify ? "Classify" : "Regress", timeout,
                  call.model, std::move(exchange)),
        classifies_(call.method == RestMethod::kClassify),
        examples_(memory_.get()) {}

  const tensorflow::serving::MultiInferenceRequest& tasks() const override { return tasks_; }
  const ExampleInput& input() const override { return examples_.input(); }
  Status Write(const tensorflow::serving::MultiInferenceResponse& response) override {
    const auto& result = response.results(0);
    response_.body = classifies_ ? WriteClassifications(result.classification_result())
                                 : WriteRegressions(result.regression_result());
    return OkStatus();
  }

 private:
  Status Parse(std::string_view text, api::Call* call) override {
    Status status = examples_.Read(text, call->backend().calls.max_request_rows);
    tensorflow::serving::ModelSpec spec;
    spec.set_name(call->found().name());
    spec.set_signature_name(examples_.signature_name());
    call->FindSignature(examples_.signature_name());
    tasks_ = inference::OneTask(
        spec, classifies_ ? inference::kClassifyMethodName : inference::kRegressMethodName);
    return status;
  }

  const bool classifies_;
  ExamplesJson examples_;
  tensorflow::serving::MultiInferenceRequest tasks_;
};

template <typename ApiCall, typename Codec>
void Run(const Backend& backend, size_t max_body_bytes, std::unique_ptr<Codec> made,
         bool has_body) {
  Codec* const codec = made.get();
  auto* const call = new ApiCall(std::move(made), backend);
  if (!has_body) return call->Answer(codec->NoBody(call));
  api::ReadAndRun(max_body_bytes, call);
}

}  // namespace

void RunModel(const Backend& backend, std::chrono::milliseconds timeout, size_t max_body_bytes,
              const RestCall& call, std::shared_ptr<Exchange> exchange) {
  const bool has_body = exchange->request().has_body;
  if (call.method == RestMethod::kPredict) {
    Run<api::PredictCall>(backend, max_body_bytes,
                          std::make_unique<JsonPredict>(timeout, call, std::move(exchange)),
                          has_body);
  } else {
    Run<api::ExamplesCall>(backend, max_body_bytes,
                           std::make_unique<JsonExamples>(timeout, call, std::move(exchange)),
                           has_body);
  }
}

}  // namespace colcast::http
