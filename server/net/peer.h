// A client's address in gRPC's form: "ipv4:10.0.0.7:51234", "ipv6:%5B::1%5D:51234", "unix:".
#ifndef COLCAST_SERVER_NET_PEER_H_
#define COLCAST_SERVER_NET_PEER_H_

#include <sys/socket.h>

#include <string>

namespace colcast::net {

std::string PeerOf(const sockaddr_storage& address);

// The host in it: "ipv4:10.0.0.7", "ipv6:[2001:db8::]/64". For IPv6 it is the /64 network, because
// a single host can use all addresses of one.
std::string HostOf(const std::string& peer);

// Whether the client is on this machine: on the loopback interface or a unix socket.
bool IsLocal(const std::string& peer);

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_PEER_H_
