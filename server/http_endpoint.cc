#include "server/http_endpoint.h"

#include <utility>

#include "server/http/pages/metrics_page.h"
#include "server/http/router.h"
#include "server/http/tls_context.h"

namespace colcast {

HttpEndpoint::HttpEndpoint(const Backend& backend) : status_page_(backend, COLCAST_VERSION) {}

Status HttpEndpoint::Start(http::HttpServer::Options options, const std::optional<TlsConfig>& tls,
                           const std::string& metrics_path, const Backend& backend,
                           std::unique_ptr<HttpEndpoint>* endpoint) {
  if (tls.has_value()) {
    if (Status status = http::MakeTlsContext(*tls, &options.tls); !status.ok()) return status;
  }
  std::unique_ptr<HttpEndpoint> made(new HttpEndpoint(backend));
  http::Router router;
  made->status_page_.AddTo(&router);
  if (!metrics_path.empty()) {
    router.AddPage(metrics_path, [backend] { return http::MetricsPage(backend, COLCAST_VERSION); });
  }
  Status status = http::HttpServer::Start(options, std::move(router), &made->server_);
  if (status.ok()) *endpoint = std::move(made);
  return status;
}

}  // namespace colcast
