#include "server/http/model_api.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "server/base/available_cores.h"
#include "server/http/infer_api.h"
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

scheduling::WorkerPool::Options ParserOptions() {
  scheduling::WorkerPool::Options options;
  options.num_workers = std::max(1, AvailableCores() / 2);
  options.thread_name = "rest_parser";
  return options;
}

}  // namespace

ModelApi::ModelApi(const Backend& backend, const ModelApiOptions& options)
    : backend(backend), options(options), parsers(ParserOptions()) {}

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
