// The client's side of TLS.
#ifndef COLCAST_SERVER_SENDER_CLIENT_TLS_H_
#define COLCAST_SERVER_SENDER_CLIENT_TLS_H_

#include <openssl/types.h>

#include <memory>
#include <string>

#include "server/base/status.h"

namespace colcast::sender {

struct ClientTls {
  std::string server_name;        // in the server's certificate: a host or an address
  std::string root_certificates;  // PEM files; empty: the system's
  std::string private_key;        // empty, with the next: none
  std::string certificate_chain;
};

// INVALID_ARGUMENT names the file that cannot be read.
Status MakeContext(const ClientTls& tls, std::shared_ptr<SSL_CTX>* context);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_CLIENT_TLS_H_
