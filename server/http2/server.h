// Listens, and serves what connects: gRPC over HTTP/2.
#ifndef COLCAST_SERVER_HTTP2_SERVER_H_
#define COLCAST_SERVER_HTTP2_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/base/tls_config.h"
#include "server/http2/connection.h"
#include "server/net/listener.h"
#include "server/net/poller.h"
#include "server/net/tls_context.h"

namespace colcast::http2 {

class Server {
 public:
  // `poller` outlives the server; threads that poll it serve. `http1`, which may be null, serves
  // the clients that speak HTTP/1.
  Server(const ConnectionOptions& options, Methods methods, net::Poller* poller,
         net::Accept http1 = nullptr);
  // Cuts off all calls, and waits for handlers as Shutdown() does.
  ~Server();

  // On every listener from now on; in the clear without. As UseTls().
  Status SetTls(const TlsConfig& tls);
  // Listens, on any free port where `port` is 0; *bound is the one. UNAVAILABLE, naming the
  // address.
  Status Listen(const std::string& host, int port, int* bound);
  // On a unix socket.
  Status Listen(const std::string& path);

  // Takes no more calls and returns when those in flight have been answered. Calls not answered by
  // `deadline` are cut off and waited for, and the result is false: handlers hold none of them when
  // this returns. `on_cut` is called in between, so that handlers can stop their own waits. Streams
  // end.
  bool Shutdown(
      std::chrono::system_clock::time_point deadline, const std::function<void()>& on_cut = [] {});

 private:
  std::vector<std::shared_ptr<Connection>> Connections() const {
    return shared_->poller->AllOf<Connection>();
  }
  void EndListening();
  // Returns when the abandoned calls that handlers still hold have ended.
  void CloseAll(const std::function<void()>& on_cut = [] {});

  const std::shared_ptr<Shared> shared_;
  const net::Protocols protocols_;
  net::Listener::Serving serving_;
  std::vector<std::shared_ptr<net::Listener>> listeners_;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_SERVER_H_
