#include "server/http1/server.h"

#include <vector>

#include "server/base/log.h"
#include "server/http1/connection.h"

namespace colcast::http {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::shared_ptr<Connection>> ConnectionsOf(const Shared& shared) {
  return shared.poller->AllOf<Connection>();
}

}  // namespace

HttpServer::HttpServer(const Options& options, Router router, net::Poller* poller)
    : router_(std::move(router)), shared_(std::make_shared<Shared>(options, &router_, poller)) {}

Status HttpServer::Start(const Options& options, Router router, net::Poller* poller,
                         std::unique_ptr<HttpServer>* server) {
  std::unique_ptr<HttpServer> made(new HttpServer(options, std::move(router), poller));
  if (Status status = made->Listen(); !status.ok()) return status;
  *server = std::move(made);
  return OkStatus();
}

Status HttpServer::Listen() {
  const Options& options = shared_->options;
  const net::Accept accept = [shared = shared_](std::unique_ptr<net::Socket> socket,
                                                std::string peer) {
    Connection::Start(std::move(socket), std::move(peer), shared);
  };
  const Status status = net::Listener::Listen(options.host, options.port,
                                              {options.tls, net::Protocol::kHttp1, accept},
                                              shared_->poller, &listener_);
  if (!status.ok()) {
    return Unavailable("cannot listen on ", options.host, ':', options.port,
                       " for HTTP: ", status.message);
  }
  address_ = options.host + ':' + std::to_string(listener_->port());
  return OkStatus();
}

HttpServer::~HttpServer() { Shutdown(Clock::time_point::max()); }

void HttpServer::Drain() { shared_->draining = true; }

void HttpServer::Shutdown(Clock::time_point deadline) {
  if (listener_ != nullptr) listener_->End();
  listener_.reset();
  net::OpenConnections& open = shared_->connections;
  open.Enter(net::OpenConnections::Phase::kDraining);
  for (const auto& connection : ConnectionsOf(*shared_)) connection->Stop();
  if (open.WaitForNone(deadline)) return;
  open.Enter(net::OpenConnections::Phase::kClosing);
  LogWarning("HTTP: cut off unfinished requests");
  for (const auto& connection : ConnectionsOf(*shared_)) connection->CloseAtOnce();
  // A connection whose request is still with a handler lasts until the handler answers.
  open.WaitForNone(Clock::time_point::max());
}

}  // namespace colcast::http
