// What the TLS sockets of a server have in common.
#ifndef COLCAST_SERVER_NET_TLS_CONTEXT_H_
#define COLCAST_SERVER_NET_TLS_CONTEXT_H_

#include <openssl/types.h>

#include <memory>

#include "server/base/status.h"
#include "server/base/tls_config.h"

namespace colcast::net {

using TlsContext = std::shared_ptr<SSL_CTX>;

// What clients are told that is spoken. A client that asks for other protocols only is refused
// where there is HTTP/2 only.
enum class Protocols { kHttp1, kHttp2, kBoth };

// As UseTls().
Status MakeTlsContext(const TlsConfig& config, Protocols protocols, TlsContext* context);

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_TLS_CONTEXT_H_
