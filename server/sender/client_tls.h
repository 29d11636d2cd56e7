// TLS contexts for a client.
#ifndef COLCAST_SERVER_SENDER_CLIENT_TLS_H_
#define COLCAST_SERVER_SENDER_CLIENT_TLS_H_

#include <openssl/types.h>

#include <memory>
#include <string>

#include "server/base/status.h"

namespace colcast::sender {

struct ClientTls {
  std::string server_name;        // the name in the server's certificate: a host or an address
  std::string root_certificates;  // path of a PEM file; empty for the system's certificates
  // Path of a PEM file; if this and the next are empty, no certificate is sent.
  std::string private_key;
  std::string certificate_chain;
};

// Returns INVALID_ARGUMENT with the name of a file that cannot be read.
Status MakeContext(const ClientTls& tls, std::shared_ptr<SSL_CTX>* context);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_CLIENT_TLS_H_
