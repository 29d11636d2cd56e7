// Where a client is, as gRPC has it: "ipv4:10.0.0.7:51234", "ipv6:%5B::1%5D:51234", "unix:".
#ifndef COLCAST_SERVER_NET_PEER_H_
#define COLCAST_SERVER_NET_PEER_H_

#include <sys/socket.h>

#include <string>

namespace colcast::net {

std::string PeerOf(const sockaddr_storage& address);

// Its host: "ipv4:10.0.0.7", "ipv6:[2001:db8::]/64". Whoever has an IPv6 address has all of its
// /64.
std::string HostOf(const std::string& peer);

// Whether it is on this machine: at the loopback interface or a unix socket.
bool IsLocal(const std::string& peer);

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_PEER_H_
