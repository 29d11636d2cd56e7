// What the TLS sockets of a server have in common.
#ifndef COLCAST_SERVER_NET_TLS_CONTEXT_H_
#define COLCAST_SERVER_NET_TLS_CONTEXT_H_

#include <absl/base/thread_annotations.h>
#include <openssl/types.h>

#include <memory>
#include <mutex>

#include "server/base/status.h"
#include "server/base/tls_config.h"

namespace colcast::net {

// What clients are told that is spoken. A client that asks for other protocols only is refused
// where there is HTTP/2 only.
enum class Protocols { kHttp1, kHttp2, kBoth };

// The key and certificates of a server, renewed without a restart. Any thread may use it.
class TlsContext {
 public:
  // Errors of UseTls().
  static Status Create(const TlsConfig& config, Protocols protocols,
                       std::shared_ptr<TlsContext>* context);

  // For new connections. The others keep what they began with.
  std::shared_ptr<SSL_CTX> current() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return current_;
  }
  // Reads the file of the configuration again if it has changed. One that is wrong is logged, and
  // what there was goes on.
  void Reload();

  TlsContext(TlsConfig config, Protocols protocols)
      : protocols_(protocols), config_(std::move(config)) {}

 private:
  Status Use(const TlsConfig& config);

  const Protocols protocols_;
  mutable std::mutex mutex_;
  TlsConfig config_ ABSL_GUARDED_BY(mutex_);  // the last that was tried
  std::shared_ptr<SSL_CTX> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_TLS_CONTEXT_H_
