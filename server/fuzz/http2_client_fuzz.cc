// libFuzzer target: feeds a server's bytes to a ClientConnection. Each call must end exactly once.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/http2/client_connection.h"
#include "server/net/poller.h"
#include "server/wire/fuzz_testing.h"

namespace colcast::http2 {
namespace {

constexpr int kCalls = 4;

void Call(std::string_view input) {
  static auto* const poller = new net::Poller;
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) != 0) std::abort();
  int ended = 0;
  ClientConnection::Events events;
  events.failed = [](ClientConnection::CallPointer call, Status status) {
    call->End(std::move(status));
  };
  events.ended = [](ClientConnection::CallPointer call, uint32_t error) { call->End(error); };
  events.refused = events.unsent = [](const ClientConnection::CallPointer& call) {
    call->End(Unavailable("refused"));
  };
  events.not_connected = [](const Status&) {};
  const auto connection = ClientConnection::Start(sockets[1], "server", poller, events);
  for (uint64_t number = 0; number < kCalls; ++number) {
    auto message = std::make_shared<std::string>(number * 40'000, 'x');
    ClientRequest request{"/e", {}, {{"x", "y"}}};
    request.message.Append(message, reinterpret_cast<const uint8_t*>(message->data()),
                           message->size());
    connection->Send(std::make_unique<ClientCall>(
        number, std::move(request), [&ended](const Status&, const Message&) { ++ended; }));
  }
  connection->Write();
  const auto poll = [] { poller->Poll(scheduling::Clock::time_point::min()); };
  while (input.size() > 1) {
    const auto size = std::min<size_t>(input.size() - 1, static_cast<uint8_t>(input[0]));
    if (send(sockets[0], input.data() + 1, size, MSG_NOSIGNAL) < 0) break;
    poll();
    std::array<char, 4096> bytes;
    while (recv(sockets[0], bytes.data(), bytes.size(), 0) > 0) poll();
    if (size == 0) connection->Cancel(input[1] % kCalls, DeadlineExceeded("late"));
    input.remove_prefix(1 + size);
  }
  close(sockets[0]);
  poll();
  connection->Close(Unavailable("over"));
  fuzz::Expect(ended == kCalls, std::to_string(ended) + " calls have ended");
}

}  // namespace
}  // namespace colcast::http2

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  colcast::http2::Call({reinterpret_cast<const char*>(data), size});
  return 0;
}
