// Listens, and serves what connects: gRPC over HTTP/2.
#ifndef COLCAST_SERVER_HTTP2_SERVER_H_
#define COLCAST_SERVER_HTTP2_SERVER_H_

#include <absl/base/thread_annotations.h>
#include <openssl/types.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/base/status.h"
#include "server/base/tls_config.h"
#include "server/http2/connection.h"
#include "server/http2/poller.h"

namespace colcast::http2 {

class Server {
 public:
  // `poller` outlives the server, and whoever polls it serves. Where nobody does for a while,
  // because all are busy, a thread of the server's own does. `tls` null: in the clear.
  Server(const ConnectionOptions& options, Methods methods, Poller* poller);
  ~Server();

  // On every listener from now on. As UseTls().
  Status SetTls(const TlsConfig& tls);
  // Listens, on any free port where `port` is 0; *bound is the one. UNAVAILABLE, naming the
  // address.
  Status Listen(const std::string& host, int port, int* bound);
  // On a unix socket.
  Status Listen(const std::string& path);

  // Takes no more calls and returns when those in flight have been answered, or at `deadline`:
  // false if some had to be cut off then. Streams end.
  bool Shutdown(std::chrono::system_clock::time_point deadline);

  // Implementation details follow.
 private:
  class Listener;
  struct TlsDeleter {
    void operator()(SSL_CTX* context) const;
  };

  Status Add(int socket, const std::string& address);
  void StandBy();
  template <typename Done>
  bool WaitUntil(std::chrono::system_clock::time_point deadline, const Done& done) const;
  std::vector<std::shared_ptr<Connection>> Connections() const;

  const std::shared_ptr<Shared> shared_;
  std::unique_ptr<SSL_CTX, TlsDeleter> tls_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread standby_;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_SERVER_H_
