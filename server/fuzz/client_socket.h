// A client for fuzzers of server connections. The fuzzer's input determines what the client does.
#ifndef COLCAST_SERVER_FUZZ_CLIENT_SOCKET_H_
#define COLCAST_SERVER_FUZZ_CLIENT_SOCKET_H_

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "server/net/socket.h"
#include "server/wire/fuzz_testing.h"

namespace colcast {

using fuzz::Expect;

// The client's end of a nonblocking connection.
class ClientSocket {
 public:
  ClientSocket() {
    std::array<int, 2> sockets{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) != 0) std::abort();
    fd_ = sockets[0];
    other_ = std::make_unique<net::Socket>(sockets[1], nullptr);
  }
  ~ClientSocket() { close(fd_); }
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  int fd() const { return fd_; }
  // Returns the server's end. Call once.
  std::unique_ptr<net::Socket> TakeOther() { return std::move(other_); }
  // Returns false if the connection has ended or its buffer is full.
  bool Send(std::string_view bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
  }

 private:
  int fd_ = -1;
  std::unique_ptr<net::Socket> other_;
};

// Plays the input, a sequence of steps: an action, the number of bytes divided by 8, and the bytes.
// Each step sends its bytes, then performs its action. The client hangs up at the end of the input.
template <typename Client>
void Play(std::string_view input, Client* client) {
  while (input.size() > 2) {
    const auto size = std::min<size_t>(input.size() - 2, 8 * static_cast<uint8_t>(input[1]));
    client->Send(input.substr(2, size));
    client->Do(static_cast<uint8_t>(input[0]));
    input.remove_prefix(2 + size);
  }
  client->HangUp();
}

}  // namespace colcast

#endif  // COLCAST_SERVER_FUZZ_CLIENT_SOCKET_H_
