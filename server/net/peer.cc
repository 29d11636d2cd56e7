#include "server/net/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <iterator>
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
  if (StartsWith(peer, "ipv4:")) return peer.substr(0, peer.rfind(':'));
  constexpr std::string_view kIpv6 = "ipv6:[";
  constexpr size_t kNetworkBytes = 8;
  const size_t end = peer.rfind(']');
  in6_addr address{};
  if (!StartsWith(peer, kIpv6) || end == std::string::npos ||
      inet_pton(AF_INET6, peer.substr(kIpv6.size(), end - kIpv6.size()).c_str(), &address) != 1) {
    return peer;
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof(text));
    return std::string("ipv4:") + text;
  }
  std::fill(address.s6_addr + kNetworkBytes, std::end(address.s6_addr), 0);
  inet_ntop(AF_INET6, &address, text, sizeof(text));
  return std::string(kIpv6) + text + "]/64";
}

bool IsLocal(const std::string& peer) {
  for (const char* local : {"ipv4:127.", "ipv6:%5B::1%5D:", "ipv6:[::1]:", "unix:"}) {
    if (StartsWith(peer, local)) return true;
  }
  return false;
}

}  // namespace colcast::net
