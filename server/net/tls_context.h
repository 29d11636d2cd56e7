// The TLS context shared by a server's sockets.
#ifndef COLCAST_SERVER_NET_TLS_CONTEXT_H_
#define COLCAST_SERVER_NET_TLS_CONTEXT_H_

#include <absl/base/thread_annotations.h>
#include <openssl/types.h>

#include <memory>
#include <mutex>

#include "server/base/status.h"
#include "server/base/tls_config.h"

namespace colcast::net {

// The protocols offered to clients. With HTTP/2 only, a client that asks only for other protocols
// is refused.
enum class Protocols { kHttp1, kHttp2, kBoth };

// A server's key and certificates, renewed without a restart. Thread-safe.
class TlsContext {
 public:
  // Errors of UseTls().
  static Status Create(const TlsConfig& config, Protocols protocols,
                       std::shared_ptr<TlsContext>* context);

  // For new connections. Existing ones keep the context with which they began.
  std::shared_ptr<SSL_CTX> current() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return current_;
  }
  // Reads the configuration file again if it has changed. An invalid one is logged, and the current
  // context stays.
  void Reload();

  TlsContext(TlsConfig config, Protocols protocols)
      : protocols_(protocols), config_(std::move(config)) {}

 private:
  Status Use(const TlsConfig& config);

  const Protocols protocols_;
  mutable std::mutex mutex_;
  TlsConfig config_ ABSL_GUARDED_BY(mutex_);  // the last one tried
  std::shared_ptr<SSL_CTX> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_TLS_CONTEXT_H_
