#include "server/net/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string_view>

namespace colcast::net {
namespace {

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

std::string PeerOf(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
    return std::string("ipv4:") + host + ':' + std::to_string(ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
    return std::string("ipv6:[") + host + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return "unix:";
}

std::string HostOf(const std::string& peer) {
  const bool has_port = StartsWith(peer, "ipv4:") || StartsWith(peer, "ipv6:");
  return has_port ? peer.substr(0, peer.rfind(':')) : peer;
}

bool IsLocal(const std::string& peer) {
  for (const char* local : {"ipv4:127.", "ipv6:%5B::1%5D:", "ipv6:[::1]:", "unix:"}) {
    if (StartsWith(peer, local)) return true;
  }
  return false;
}

}  // namespace colcast::net
