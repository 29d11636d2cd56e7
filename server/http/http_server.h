// The HTTP endpoint: connections, limits and timeouts. What is answered is the router's business.
#ifndef COLCAST_SERVER_HTTP_HTTP_SERVER_H_
#define COLCAST_SERVER_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "server/base/status.h"
#include "server/base/tls_config.h"
#include "server/callers/name_source.h"
#include "server/http/router.h"

namespace colcast::http {

class HttpServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";
    int port = 0;                 // 0: any free one
    int num_threads = 1;          // that read requests and write answers; handlers bring their own
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

  // UNAVAILABLE, naming the address, if it cannot be listened on; errors of UseTls.
  static Status Start(const Options& options, Router router, std::unique_ptr<HttpServer>* server);

  // As Shutdown, however long it takes.
  virtual ~HttpServer() = default;

  // HOST:PORT with the port that was bound.
  virtual std::string address() const = 0;

  // From now on each answer closes its connection, so that clients go elsewhere for the next one.
  virtual void Drain() = 0;

  // Takes no more requests and returns when those in flight have been answered. What has not ended
  // by `deadline`, such as a body that does not come, is cut and named in the log.
  virtual void Shutdown(std::chrono::system_clock::time_point deadline) = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_HTTP_SERVER_H_
