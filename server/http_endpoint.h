// The HTTP endpoint: the REST API and the pages, on one port.
#ifndef COLCAST_SERVER_REST_ENDPOINT_H_
#define COLCAST_SERVER_REST_ENDPOINT_H_

#include <chrono>
#include <memory>
#include <string>

#include "server/backend.h"
#include "server/base/status.h"
#include "server/http1/server.h"
#include "server/net/listener.h"
#include "server/net/poller.h"
#include "server/pages/pages.h"
#include "server/rest/model_api.h"

namespace colcast {

class HttpEndpoint {
 public:
  // `metrics_path` is the path of the page for Prometheus; empty for none. `backend` must outlive
  // the endpoint. Errors are those of HttpServer::Start().
  static Status Start(const http::HttpServer::Options& options,
                      const http::ModelApiOptions& model_api, const std::string& metrics_path,
                      const Backend& backend, net::Poller* poller,
                      std::unique_ptr<HttpEndpoint>* endpoint);

  // See HttpServer.
  const std::string& address() const { return server_->address(); }
  net::Accept accept() const { return server_->accept(); }
  void Drain() { server_->Drain(); }
  void Shutdown(std::chrono::system_clock::time_point deadline) { server_->Shutdown(deadline); }

 private:
  explicit HttpEndpoint(const Backend& backend);

  pages::StatusPage status_page_;
  std::unique_ptr<http::HttpServer> server_;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_REST_ENDPOINT_H_
