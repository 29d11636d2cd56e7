// Listens for clients and serves gRPC over HTTP/2.
#ifndef COLCAST_SERVER_HTTP2_SERVER_H_
#define COLCAST_SERVER_HTTP2_SERVER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/http2/connection.h"
#include "server/net/listener.h"
#include "server/net/poller.h"
#include "server/net/tls_context.h"

namespace colcast::http2 {

class Server {
 public:
  // `poller` must outlive the server; threads that poll it serve requests. `tls` is null for
  // unencrypted connections.
  Server(const ConnectionOptions& options, Methods methods, net::Poller* poller,
         std::shared_ptr<net::TlsContext> tls = nullptr);
  // Cuts off all calls, and waits for handlers like Shutdown().
  ~Server();

  // Listens on `port`, or on any free port if it is 0. Sets *bound to the port. Returns
  // UNAVAILABLE, naming the address, on failure.
  Status Listen(const std::string& host, int port, int* bound);
  // Listens on a unix socket.
  Status Listen(const std::string& path);

  // Accepts no more calls, ends streams, and returns when the calls in flight have been answered.
  // At `deadline`, cuts off unanswered calls, waits until handlers have released them, and returns
  // false.
  bool Shutdown(std::chrono::steady_clock::time_point deadline);

 private:
  std::vector<std::shared_ptr<Connection>> Connections() const {
    return shared_->poller->AllOf<Connection>();
  }
  void EndListening();
  // Closes all connections, and waits until handlers have released the calls.
  void CloseAll();

  const std::shared_ptr<Shared> shared_;
  const net::Listener::Serving serving_;
  std::vector<std::shared_ptr<net::Listener>> listeners_;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_SERVER_H_
