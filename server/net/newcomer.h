// Serves HTTP/1 and HTTP/2 clients on one port.
#ifndef COLCAST_SERVER_NET_NEWCOMER_H_
#define COLCAST_SERVER_NET_NEWCOMER_H_

#include "server/net/listener.h"
#include "server/net/poller.h"

namespace colcast::net {

// Hands each client to one of the two: without TLS by its first bytes, with TLS by the protocol
// agreed in the handshake (Protocols::kBoth), HTTP/1 if there is none. A client that sends too
// little within 20 s, or hangs up, is disconnected. `poller` must outlive the result.
Accept ByProtocol(Poller* poller, Accept http1, Accept http2);

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_NEWCOMER_H_
