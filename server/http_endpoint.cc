#include "server/http_endpoint.h"

#include <utility>

#include "server/http1/router.h"
#include "server/pages/pages.h"

namespace colcast {

HttpEndpoint::HttpEndpoint(const Backend& backend) : status_page_(backend, COLCAST_VERSION) {}

Status HttpEndpoint::Start(const http::HttpServer::Options& options,
                           const http::ModelApiOptions& model_api, const std::string& metrics_path,
                           const Backend& backend, net::Poller* poller,
                           std::unique_ptr<HttpEndpoint>* endpoint) {
  std::unique_ptr<HttpEndpoint> made(new HttpEndpoint(backend));
  http::Router router;
  http::AddModelApi(backend, model_api, &router);
  made->status_page_.AddTo(&router);
  if (!metrics_path.empty()) {
    router.AddPage(metrics_path,
                   [backend] { return pages::MetricsPage(backend, COLCAST_VERSION); });
  }
  Status status = http::HttpServer::Start(options, std::move(router), poller, &made->server_);
  if (status.ok()) *endpoint = std::move(made);
  return status;
}

}  // namespace colcast
