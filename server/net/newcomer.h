// Clients of HTTP/1 and of HTTP/2 on one port: each begins in its own way.
#ifndef COLCAST_SERVER_NET_NEWCOMER_H_
#define COLCAST_SERVER_NET_NEWCOMER_H_

#include "server/net/listener.h"
#include "server/net/poller.h"

namespace colcast::net {

// Hands each client to one of the two: in the clear by its first bytes, with TLS by what the
// handshake agreed upon (Protocols::kBoth); without an agreement it speaks HTTP/1. A client that
// says too little within 20 s, or hangs up, is closed. `poller` outlives them.
Accept ByProtocol(Poller* poller, Accept http1, Accept http2);

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_NEWCOMER_H_
