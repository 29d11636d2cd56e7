// TLS: the server's settings for all endpoints, from TensorFlow Serving's --ssl_config_file, and
// the context that its sockets share.
#ifndef COLCAST_SERVER_NET_TLS_CONTEXT_H_
#define COLCAST_SERVER_NET_TLS_CONTEXT_H_

#include <absl/base/thread_annotations.h>
#include <openssl/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "server/base/file.h"
#include "server/base/status.h"

namespace colcast::net {

// Made by ReadTlsConfig(), which has checked key and certificates. All texts are PEM.
struct TlsConfig {
  std::string key;
  std::string certificates;        // the server's certificate, then the intermediate ones
  std::string client_authorities;  // if empty, clients need no certificate
  std::string path;                // path of the file with these settings; empty without a file
  FileIdentity identity;           // the file's identity before it was read
  // The period in which all certificates are valid, in seconds since 1970. Set by ReadTlsConfig().
  int64_t valid_from = 0;
  int64_t valid_until = 0;
};

// Reads a tensorflow.serving.SSLConfig. Returns INVALID_ARGUMENT, naming the file, for a field that
// is missing or not PEM, and for a certificate that does not match the key.
Status ReadTlsConfig(const std::string& path, TlsConfig* config);

// Makes `context` present the certificate and, with client_authorities, request clients'
// certificates. Requires TLS 1.2 or later.
Status UseTls(const TlsConfig& config, SSL_CTX* context);

// The protocol of a port. An HTTP/2 port refuses a client whose ALPN offers only other protocols.
enum class Protocol { kHttp1, kHttp2 };

// The key and the certificates of all ports, renewed without a restart. Thread-safe.
class TlsContext {
 public:
  // Returns errors like UseTls().
  static Status Create(const TlsConfig& config, std::shared_ptr<TlsContext>* context);

  // The context for new connections. Existing connections keep the one they began with.
  std::shared_ptr<SSL_CTX> current(Protocol protocol) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return current_[protocol == Protocol::kHttp2 ? 1 : 0];
  }
  // Reads the configuration file again if it has changed. If it is invalid, or a certificate has
  // expired or is not valid yet, logs a warning and keeps the current contexts; tries again when
  // the certificates become valid.
  void Reload();

  explicit TlsContext(TlsConfig config) : config_(std::move(config)) {}

 private:
  Status Use(const TlsConfig& config);

  std::mutex reload_mutex_;
  TlsConfig config_ ABSL_GUARDED_BY(reload_mutex_);  // the last valid one
  // When the refused certificates, which are not valid yet, become valid; 0 for none.
  int64_t retry_at_ ABSL_GUARDED_BY(reload_mutex_) = 0;
  mutable std::mutex mutex_;
  std::array<std::shared_ptr<SSL_CTX>, 2> current_ ABSL_GUARDED_BY(mutex_);  // by protocol
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_TLS_CONTEXT_H_
