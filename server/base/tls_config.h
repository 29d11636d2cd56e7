// The server's side of TLS, from TensorFlow Serving's --ssl_config_file, for every endpoint.
#ifndef COLCAST_SERVER_BASE_TLS_CONFIG_H_
#define COLCAST_SERVER_BASE_TLS_CONFIG_H_

#include <openssl/types.h>

#include <string>

#include "server/base/file.h"
#include "server/base/status.h"

namespace colcast {

// All PEM, the text itself. Made by ReadTlsConfig(), so key and certificates are known to be good.
struct TlsConfig {
  std::string key;
  std::string certificates;        // the server's, then those between it and the root
  std::string client_authorities;  // empty: no client needs a certificate
  std::string path;                // of the file; empty: it was not read from one
  FileIdentity identity;           // of the file, before it was read
};

// Reads a tensorflow.serving.SSLConfig. INVALID_ARGUMENT names the file and the field that is
// missing, is no PEM, or, for the certificate, is not the key's.
Status ReadTlsConfig(const std::string& path, TlsConfig* config);

// Makes `context` offer the certificate and, with client_authorities, ask clients for theirs.
// TLS 1.2 at least.
Status UseTls(const TlsConfig& config, SSL_CTX* context);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_TLS_CONFIG_H_
