#include "server/rpc/peer.h"

#include <string_view>

namespace colcast::rpc {
namespace {

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

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

}  // namespace colcast::rpc
