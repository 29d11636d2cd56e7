// The HTTP endpoint: its connections, limits and timeouts. The router passes requests to handlers.
#ifndef COLCAST_SERVER_HTTP1_SERVER_H_
#define COLCAST_SERVER_HTTP1_SERVER_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "server/base/status.h"
#include "server/http1/router.h"
#include "server/net/listener.h"
#include "server/net/poller.h"
#include "server/net/tls_context.h"

namespace colcast::http {

struct Shared;

class HttpServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";
    int port = 0;  // 0 for any free port
    size_t max_header_bytes = 16 << 10;
    // The maximum size of a body as sent. If the poller's hosts().bodies has no room for a body, it
    // is skipped and answered 429, or 413 if it is too large by itself.
    size_t max_body_bytes = 256 << 20;
    // The limit for idle time between requests, and for receiving a request's header.
    std::chrono::milliseconds idle_timeout{60'000};
    // The limit for receiving a request's body, and for sending an answer. Chunk extensions and
    // trailers must fit into the 64 KiB that are read at once.
    std::chrono::milliseconds transfer_timeout{300'000};
    // After this time, a body must arrive at a minimum rate.
    std::chrono::seconds body_grace{10};
    // Replaces transfer_timeout for receiving a body while more than half of the memory for bodies
    // is in use.
    std::chrono::seconds body_time_where_short{30};
    std::shared_ptr<net::TlsContext> tls;  // null for unencrypted connections
    std::string caller_header;             // in lower case; empty if callers are not distinguished
  };

  // `poller` must outlive the server; threads that poll it serve requests. Returns UNAVAILABLE,
  // naming the address, if listening fails.
  static Status Start(const Options& options, Router router, net::Poller* poller,
                      std::unique_ptr<HttpServer>* server);

  // Shuts down without a deadline.
  ~HttpServer();

  // HOST:PORT with the bound port.
  const std::string& address() const { return address_; }

  // From now on the server closes each connection after an answer, so that the client's next
  // request goes elsewhere.
  void Drain();

  // Accepts no more requests and returns when the requests in flight have been answered. At
  // `deadline`, cuts off unfinished requests, such as one whose body never arrives, and logs this.
  void Shutdown(std::chrono::steady_clock::time_point deadline);

 private:
  HttpServer(const Options& options, Router router, net::Poller* poller);
  Status Listen();

  const Router router_;  // not in shared_: a handler may be the last to release shared_
  const std::shared_ptr<Shared> shared_;
  std::shared_ptr<net::Listener> listener_;
  std::string address_;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_SERVER_H_
