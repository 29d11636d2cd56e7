// The HTTP endpoint: connections, limits and timeouts. What is answered is the router's business.
#ifndef COLCAST_SERVER_HTTP1_SERVER_H_
#define COLCAST_SERVER_HTTP1_SERVER_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/base/status.h"
#include "server/base/tls_config.h"
#include "server/callers/callers.h"
#include "server/http1/router.h"
#include "server/net/listener.h"
#include "server/net/poller.h"

namespace colcast::http {

struct Shared;

class HttpServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";
    int port = 0;                 // 0: any free one
    bool listens = true;          // false: others bring it its clients (accept())
    int max_connections = 10000;  // one more is answered 503 and closed
    size_t max_header_bytes = 16 << 10;
    size_t max_body_bytes = 256 << 20;  // as sent
    // Most bytes that the bodies of all requests, and what they are made into, take together. One
    // that finds no room is passed over and answered 429, or 413 if it alone is too large.
    size_t max_memory_bytes = size_t{2} << 30;
    // How long a connection may lie idle between requests, and a request's header may take.
    std::chrono::milliseconds idle_timeout{60'000};
    // How long a request's body may take to arrive, and an answer to be taken. Chunk extensions
    // and trailers share the 64 KiB that are read at once.
    std::chrono::milliseconds transfer_timeout{300'000};
    std::optional<TlsConfig> tls;
    callers::NameSource names;  // of callers
  };

  // `poller` outlives the server, and whoever polls it serves. UNAVAILABLE, naming the address, if
  // it cannot be listened on; errors of UseTls.
  static Status Start(const Options& options, Router router, net::Poller* poller,
                      std::unique_ptr<HttpServer>* server);

  // As Shutdown, however long it takes.
  ~HttpServer();

  // HOST:PORT with the port that was bound.
  const std::string& address() const { return address_; }

  // What serves a client that has connected elsewhere.
  net::Accept accept() const;

  // From now on each answer closes its connection, so that clients go elsewhere for the next one.
  void Drain();

  // Takes no more requests and returns when those in flight have been answered. What has not ended
  // by `deadline`, such as a body that does not come, is cut and named in the log.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  HttpServer(const Options& options, Router router, net::Poller* poller);
  Status Listen();

  const Router router_;  // its handlers may have threads of their own, which answer
  const std::shared_ptr<Shared> shared_;
  std::shared_ptr<net::Listener> listener_;  // null: there is none
  std::string address_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_SERVER_H_
