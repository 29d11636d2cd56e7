#include "server/http2/server.h"

#include <algorithm>
#include <utility>

namespace colcast::http2 {
namespace {

using Clock = std::chrono::steady_clock;

// How long a client that does not read may delay the end of a stream.
constexpr std::chrono::seconds kPatience(1);

Status CannotListen(const std::string& address, const Status& reason) {
  return Unavailable("cannot listen on ", address, ": ", reason.message);
}

}  // namespace

Server::Server(const ConnectionOptions& options, Methods methods, net::Poller* poller,
               std::shared_ptr<net::TlsContext> tls)
    : shared_(std::make_shared<Shared>(options, std::move(methods), poller)),
      serving_{std::move(tls), net::Protocol::kHttp2,
               [shared = shared_](std::unique_ptr<net::Socket> socket, std::string peer) {
                 Connection::Start(std::move(socket), std::move(peer), shared);
               }} {}

Server::~Server() {
  EndListening();
  CloseAll();
}

Status Server::Listen(const std::string& host, int port, int* bound) {
  std::shared_ptr<net::Listener>& listener = listeners_.emplace_back();
  const Status status = net::Listener::Listen(host, port, serving_, shared_->poller, &listener);
  if (!status.ok()) {
    listeners_.pop_back();
    return CannotListen(host + ':' + std::to_string(port), status);
  }
  *bound = listener->port();
  return OkStatus();
}

Status Server::Listen(const std::string& path) {
  std::shared_ptr<net::Listener>& listener = listeners_.emplace_back();
  const Status status = net::Listener::Listen(path, serving_, shared_->poller, &listener);
  if (status.ok()) return status;
  listeners_.pop_back();
  return CannotListen(path, status);
}

void Server::EndListening() {
  for (const auto& listener : listeners_) listener->End();
  listeners_.clear();
  shared_->connections.Enter(net::OpenConnections::Phase::kDraining);
}

bool Server::Shutdown(Clock::time_point deadline) {
  EndListening();
  for (const auto& connection : Connections()) connection->Drain();
  net::OpenConnections& open = shared_->connections;
  if (open.WaitForNone(std::min(deadline, Clock::now() + kPatience))) return true;
  for (const auto& connection : Connections()) connection->DrainAtOnce();
  if (open.WaitForNone(deadline)) return true;
  const bool cut = shared_->calls > 0;
  CloseAll();
  return !cut;
}

void Server::CloseAll() {
  shared_->connections.Enter(net::OpenConnections::Phase::kClosing);
  for (const auto& connection : Connections()) connection->CloseAtOnce();
  shared_->connections.WaitForNone(Clock::time_point::max());
}

}  // namespace colcast::http2
