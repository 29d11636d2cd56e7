#include "server/http/model_api.h"

#include <memory>
#include <string>
#include <utility>

#include "server/api/body_job.h"
#include "server/api/examples_call.h"
#include "server/api/predict_call.h"
#include "server/http/infer_api.h"
#include "server/http/json_codecs.h"
#include "server/http/model_json.h"
#include "server/http/rest_path.h"

namespace colcast::http {
namespace {

void AddCors(Response* response) {
  response->headers.emplace_back("Access-Control-Allow-Origin", "*");
  response->headers.emplace_back("Access-Control-Allow-Methods", "POST, GET");
  response->headers.emplace_back("Access-Control-Allow-Headers", "Content-Type");
}

// The answer to OPTIONS, which browsers send before a cross-origin request.
Response AllowedMethods() {
  Response response;
  response.headers.emplace_back("Allow", "GET, POST, OPTIONS");
  return response;
}

// Adds CORS headers to the answer.
class CorsExchange final : public Exchange {
 public:
  explicit CorsExchange(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  Request& request() override { return exchange_->request(); }
  uint64_t client() const override { return exchange_->client(); }
  bool cancelled() const override { return exchange_->cancelled(); }
  void Answer(Response response) override {
    AddCors(&response);
    exchange_->Answer(std::move(response));
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

Status Describe(ModelApi* api, const RestCall& call, Response* answer) {
  if (call.method == RestMethod::kStatus) {
    std::vector<models::VersionStatus> versions;
    const Status status = api->backend.models->GetStatus(call.model, &versions);
    return status.ok() ? WriteModelStatus(versions, &answer->body) : status;
  }
  std::shared_ptr<const inference::Servable> servable;
  const Status status = api->backend.models->Find(call.model, &servable);
  return status.ok() ? api->metadata.Find(servable, answer) : status;
}

bool RunsModel(const RestCall& call) {
  return call.method != RestMethod::kStatus && call.method != RestMethod::kMetadata;
}

// The body is read only if the request is for a model that is served.
bool WantsBody(const Backend& backend, const Request& head) {
  RestCall call;
  std::shared_ptr<const inference::Servable> servable;
  return ParseRestPath(head.method, head.target, &call).ok() && RunsModel(call) &&
         backend.models->Find(call.model, &servable).ok();
}

// Of a call without a body: its model was not served when the request came.
Status NoBody(api::Call* call, const ModelSpec& model) {
  if (Status status = call->FindServable(model); !status.ok()) return status;
  return Unavailable("the model was not served yet when the request came; send it again");
}

template <typename ApiCall, typename Codec>
void Run(const ModelApi& api, std::unique_ptr<Codec> codec) {
  JsonBody* const body = codec.get();
  auto* const call = new ApiCall(std::move(codec), api.backend);
  if (!body->has_body()) return call->Answer(NoBody(call, body->model()));
  api::ReadAndRun(api.options.max_body_bytes, body, call);
}

void Serve(ModelApi* api, std::shared_ptr<Exchange> exchange) {
  const Request& request = exchange->request();
  RestCall call;
  Status status = ParseRestPath(request.method, request.target, &call);
  if (status.ok() && RunsModel(call)) {
    return RunInference(api, std::move(call), std::move(exchange));
  }
  Response response;
  if (status.ok()) status = Describe(api, call, &response);
  if (!status.ok()) response = ErrorResponse(status);
  exchange->Answer(std::move(response));
}

}  // namespace

void RunInference(ModelApi* api, RestCall call, std::shared_ptr<Exchange> exchange) {
  const auto timeout = api->options.timeout;
  if (call.method == RestMethod::kPredict || call.method == RestMethod::kInfer) {
    Run<api::PredictCall>(*api, std::make_unique<JsonPredict>(std::move(exchange), timeout, call,
                                                              api->backend.max_request_columns));
  } else {
    Run<api::ExamplesCall>(*api,
                           std::make_unique<JsonExamples>(std::move(exchange), timeout, call));
  }
}

void AddModelApi(const Backend& backend, const ModelApiOptions& options, Router* router) {
  const auto api = std::make_shared<ModelApi>(backend, options);
  const auto handle = [api](void (*serve)(ModelApi*, std::shared_ptr<Exchange>)) {
    return [api, serve](std::shared_ptr<Exchange> exchange) {
      if (api->options.cors) exchange = std::make_shared<CorsExchange>(std::move(exchange));
      if (exchange->request().method == "OPTIONS") return exchange->Answer(AllowedMethods());
      serve(api.get(), std::move(exchange));
    };
  };
  router->AddTree("/v1/", handle(Serve),
                  [&backend](const Request& head) { return WantsBody(backend, head); });
  router->AddTree("/v2", handle(ServeInfer),
                  [&backend](const Request& head) { return WantsInferBody(backend, head); });
}

}  // namespace colcast::http
