// Codecs for calls over REST, whose bodies are read before the calls run.
#ifndef COLCAST_SERVER_REST_JSON_CODECS_H_
#define COLCAST_SERVER_REST_JSON_CODECS_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/api/body_job.h"
#include "server/api/call.h"
#include "server/api/codec.h"
#include "server/http1/message.h"
#include "server/http1/request_memory.h"
#include "server/rest/body_text.h"
#include "server/rest/example_json.h"
#include "server/rest/predict_json.h"
#include "server/rest/rest_path.h"

namespace colcast::http {

// Adapts an HTTP exchange to server/api.
class RestExchange final : public api::Exchange {
 public:
  using Clock = scheduling::Clock;

  // `timeout` counts from now; 0 for none.
  RestExchange(http::Exchange* exchange, std::chrono::milliseconds timeout)
      : exchange_(exchange),
        deadline_(timeout.count() > 0 ? Clock::now() + timeout : Clock::time_point::max()),
        request_bytes_(exchange_->request().body.size()) {}

  const char* entrypoint() const override { return "REST"; }
  Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return exchange_->cancelled(); }
  uint64_t client() const override { return exchange_->client(); }
  std::string traceparent() override { return exchange_->request().traceparent; }
  std::string caller(const callers::NameSource&) override { return exchange_->request().caller; }
  Status CheckClientReads(Clock::time_point since) const override {
    return exchange_->CheckClientReads(since);
  }
  void Settle(metrics::CallRecord* record, Status* status) override {
    if (!status->ok()) {
      response_ = too_large_ ? ErrorResponse(413, status->message) : ErrorResponse(*status);
    }
    record->request_bytes = request_bytes_;
    record->response_bytes = response_.body.size();
  }
  void Send(const Status&) override { exchange_->Answer(std::move(response_)); }

  // Extends the deadline by the time that a low-priority reader spent on the body.
  void Extend(Clock::duration time) {
    if (deadline_ != Clock::time_point::max()) deadline_ += time;
  }
  // Answers 413 instead of 429, because retrying does not make a body smaller.
  void set_too_large(bool too_large) { too_large_ = too_large; }

  Response* response() { return &response_; }

 private:
  http::Exchange* const exchange_;
  Clock::time_point deadline_;
  const size_t request_bytes_;
  bool too_large_ = false;
  Response response_;
};

// The part that both codecs share: reading the body.
class JsonBody : public api::Body {
 public:
  JsonBody(std::shared_ptr<Exchange> exchange, std::chrono::milliseconds timeout, ModelSpec model)
      : http_(std::move(exchange)),
        exchange_(http_.get(), timeout),
        model_(std::move(model)),
        memory_(std::move(http_->request().memory)),
        body_(std::move(http_->request().body)) {}

  size_t body_bytes() const override { return body_.size(); }
  bool is_compressed() const override { return http_->request().gzip; }
  // Also finds the servable of `call`.
  Status ReadBody(api::Call* call, size_t max_bytes, bool* inflates_too_far) override;
  void Extend(scheduling::Clock::duration time) override { exchange_.Extend(time); }

  bool has_body() const { return http_->request().has_body; }
  const ModelSpec& model() const { return model_; }

 protected:
  virtual Status Parse(const BodyBytes& body, const inference::Servable& servable) = 0;
  // The signature named in the body, as far as it was read; empty if there is none.
  virtual const std::string& signature_name() const = 0;
  // Call after Parse().
  virtual Status Finish(const inference::Servable& servable) = 0;

  const std::shared_ptr<Exchange> http_;
  RestExchange exchange_;
  const ModelSpec model_;
  // Counts the memory of the members below, and of those in derived classes.
  const std::unique_ptr<RequestMemory> memory_;
  SliceBuffer body_;
};

class JsonPredict final : public JsonBody, public api::PredictCodec {
 public:
  JsonPredict(std::shared_ptr<Exchange> exchange, std::chrono::milliseconds timeout,
              const RestCall& call)
      : JsonBody(std::move(exchange), timeout, call.model), json_(memory_.get()) {}

  const char* api() const override { return "Predict"; }
  api::Exchange& exchange() override { return exchange_; }
  Status Read(api::Call*) override { return OkStatus(); }
  void Describe(api::PredictCall* call, scheduling::JobProfile* profile) override;
  DecodedRequest& request() override { return json_.request(); }
  Status Write(const PredictResponse& response) override;

 private:
  Status Parse(const BodyBytes& body, const inference::Servable& servable) override;
  const std::string& signature_name() const override { return json_.signature_name(); }
  Status Finish(const inference::Servable& servable) override;

  tensorflow::SignatureDef with_keys_;
  PredictJson json_;
};

class JsonExamples final : public JsonBody, public api::ExamplesCodec {
 public:
  // `call.method` is kClassify or kRegress.
  JsonExamples(std::shared_ptr<Exchange> exchange, std::chrono::milliseconds timeout,
               const RestCall& call);

  const char* api() const override;
  api::Exchange& exchange() override { return exchange_; }
  Status Read(api::Call*) override { return OkStatus(); }
  const tensorflow::serving::MultiInferenceRequest& tasks() const override { return tasks_; }
  const ExampleInput& input() const override { return examples_.input(); }
  Status Write(const tensorflow::serving::MultiInferenceResponse& response) override;

 private:
  Status Parse(const BodyBytes& body, const inference::Servable& servable) override;
  const std::string& signature_name() const override { return examples_.signature_name(); }
  Status Finish(const inference::Servable& servable) override;

  const bool classifies_;
  ExamplesJson examples_;
  tensorflow::serving::MultiInferenceRequest tasks_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_JSON_CODECS_H_
