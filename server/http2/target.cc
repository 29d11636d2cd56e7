#include "server/http2/target.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "server/net/socket.h"

namespace colcast::http2 {
namespace {

constexpr char kUnix[] = "unix:";
constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;

bool IsPort(const std::string& text) {
  const bool is_number = !text.empty() && text.size() <= 5 &&
                         std::all_of(text.begin(), text.end(),
                                     [](char digit) { return digit >= '0' && digit <= '9'; });
  return is_number && std::stoi(text) >= 1 && std::stoi(text) <= UINT16_MAX;
}

Address AddressOf(const std::string& path) {
  const sockaddr_un un = net::UnixAddress(path);
  Address address;
  std::memcpy(&address.bytes, &un, sizeof(un));
  address.size = sizeof(un);
  return address;
}

Address AddressOf(const addrinfo& found) {
  Address address;
  std::memcpy(&address.bytes, found.ai_addr, found.ai_addrlen);
  address.size = found.ai_addrlen;
  return address;
}

// Makes the kernel detect a peer that has vanished silently.
void LimitSilence(int socket) {
  constexpr int kMaxSilentMilliseconds = 10'000;
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kMaxSilentMilliseconds,
             sizeof(kMaxSilentMilliseconds));
}

}  // namespace

Status Target::Parse(const std::string& text, Target* target) {
  target->text_ = text;
  target->is_unix_ = text.rfind(kUnix, 0) == 0;
  if (target->is_unix_) {
    target->host_ = text.substr(std::strlen(kUnix));
    if (target->host_.rfind("///", 0) == 0) target->host_.erase(0, 2);
    if (!target->host_.empty() && target->host_.size() <= kMaxPathBytes) return OkStatus();
    return InvalidArgument('"', text, "\": a unix socket's path has 1 to ", kMaxPathBytes,
                           " bytes");
  }
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && colon > 0 && IsPort(text.substr(colon + 1))) {
    target->host_ = text.substr(0, colon);
    target->port_ = text.substr(colon + 1);
    const bool has_brackets = target->host_.front() == '[' && target->host_.back() == ']';
    if (has_brackets) target->host_ = target->host_.substr(1, target->host_.size() - 2);
    if (has_brackets || target->host_.find(':') == std::string::npos) return OkStatus();
  }
  return InvalidArgument('"', text, "\" is neither HOST:PORT nor unix:PATH");
}

Status Target::Resolve(std::vector<Address>* addresses) const {
  if (is_unix_) {
    *addresses = {AddressOf(host_)};
    return OkStatus();
  }
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host_.c_str(), port_.c_str(), &hints, &first);
  if (error != 0) return Unavailable("cannot find ", text_, ": ", gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(first, freeaddrinfo);
  addresses->clear();
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    addresses->push_back(AddressOf(*each));
  }
  return OkStatus();
}

Status Connect(const Address& address, int* socket) {
  const int opened =
      ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (opened < 0) return Unavailable("cannot open a socket: ", std::strerror(errno));
  if (address.bytes.ss_family != AF_UNIX) LimitSilence(opened);
  const auto* const name = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (connect(opened, name, address.size) != 0 && errno != EINPROGRESS) {
    Status status = Unavailable(std::strerror(errno));
    close(opened);
    return status;
  }
  *socket = opened;
  return OkStatus();
}

}  // namespace colcast::http2
