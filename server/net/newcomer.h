// Clients of HTTP/1 and of HTTP/2 on one port: each begins in its own way.
#ifndef COLCAST_SERVER_NET_NEWCOMER_H_
#define COLCAST_SERVER_NET_NEWCOMER_H_

#include "server/net/listener.h"
#include "server/net/poller.h"

namespace colcast::net {

// Hands each client to one of the two, as soon as it is known which: in the clear by its first
// bytes, with TLS by what was agreed upon in the handshake (TlsContext for kBoth); without an
// agreement it speaks HTTP/1. One that does not say within 20 s is closed. `poller` outlives them.
Accept ByProtocol(Poller* poller, Accept http1, Accept http2);

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_NEWCOMER_H_
