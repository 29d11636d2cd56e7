// The server's TLS settings for all endpoints, from TensorFlow Serving's --ssl_config_file.
#ifndef COLCAST_SERVER_BASE_TLS_CONFIG_H_
#define COLCAST_SERVER_BASE_TLS_CONFIG_H_

#include <openssl/types.h>

#include <string>

#include "server/base/file.h"
#include "server/base/status.h"

namespace colcast {

// The name in the client's certificate, after the handshake: the first URI among its alternative
// names, else the first DNS name, else the subject's common name. Empty if there is none, or no
// certificate.
std::string CertificateName(const SSL* tls);

// The same for a given certificate.
std::string CertificateName(const X509* certificate);

// Made by ReadTlsConfig(), which has checked key and certificates. All texts are PEM.
struct TlsConfig {
  std::string key;
  std::string certificates;        // the server's certificate, then the intermediate ones
  std::string client_authorities;  // if empty, clients need no certificate
  std::string path;                // of the file with these settings; empty if there is none
  FileIdentity identity;           // of the file, before it was read
};

// Reads a tensorflow.serving.SSLConfig. INVALID_ARGUMENT, naming the file, for a field that is
// missing or not PEM, and for a certificate that does not match the key.
Status ReadTlsConfig(const std::string& path, TlsConfig* config);

// Makes `context` present the certificate and, with client_authorities, request clients'
// certificates. Requires TLS 1.2 or later.
Status UseTls(const TlsConfig& config, SSL_CTX* context);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_TLS_CONFIG_H_
