// libFuzzer target: feeds a client's bytes to a Connection. After the connection has ended, the
// counts of calls and of unread answer bytes must be 0.
#include <nghttp2/nghttp2.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/fuzz/client_socket.h"
#include "server/http2/connection.h"
#include "server/net/poller.h"

namespace colcast::http2 {
namespace {

constexpr size_t kMaxUnreadBytes = 16 << 10;

// Calls of "/h" that wait for FinishHeld(), which runs at the latest after the connection has
// ended.
std::vector<Call*>* Held() {
  static auto* const held = new std::vector<Call*>;
  return held;
}

void FinishHeld() {
  for (Call* call : std::exchange(*Held(), {})) call->Finish(InvalidArgument("held, 100%"));
}

Methods TestMethods() {
  Methods methods;
  methods.emplace("/e", Method{[](Call* call) {
                    *call->response() = call->request();
                    call->AddTrailer("x-peer",
                                     call->Metadata("x").value_or(call->connection().peer()));
                    call->Finish(OkStatus());
                  }});
  methods.emplace("/h", Method{[](Call* call) { Held()->push_back(call); }});
  methods.emplace("/s", Method{{}, [](Call* call) {
                                 call->Send(call->request());
                                 call->Send(call->request());
                                 return std::make_shared<int>();
                               }});
  return methods;
}

class Client {
 public:
  explicit Client(const std::shared_ptr<Shared>& shared) : shared_(shared) {
    Connection::Start(socket_.TakeOther(), "unix:", shared_);
  }

  void Send(std::string_view bytes) {
    if (socket_.Send(bytes)) Poll();
  }

  // Each bit of `what` selects an action.
  void Do(unsigned what) {
    for (const auto& connection : shared_->poller->AllOf<Connection>()) {
      if ((what & 1) != 0) connection->PostTimer();
      if ((what & 2) != 0) connection->Drain();
      if ((what & 4) != 0) connection->DrainAtOnce();
    }
    if ((what & 8) != 0) FinishHeld();
    if ((what & 16) != 0) Read();
    Poll();
  }

  void HangUp() {
    shutdown(socket_.fd(), SHUT_RDWR);
    turns_ = 0;
    while (!shared_->poller->All().empty() && turns_ < kMaxTurns) {
      for (const auto& each : shared_->poller->All()) each->PostTimer();
      Poll();
    }
    FinishHeld();
  }

 private:
  static constexpr int kMaxTurns = 100;

  void Poll() {
    ++turns_;
    shared_->poller->Poll(scheduling::Clock::time_point::min());
  }
  void Read() {
    std::array<char, 4096> bytes;
    while (recv(socket_.fd(), bytes.data(), bytes.size(), 0) > 0) {
    }
  }

  const std::shared_ptr<Shared> shared_;
  ClientSocket socket_;
  int turns_ = 0;
};

void Serve(std::string_view input) {
  static auto* const poller = new net::Poller(kMaxUnreadBytes);
  ConnectionOptions options;
  options.max_request_bytes = 1 << 20;
  options.max_concurrent_streams = 8;
  options.max_header_bytes = 256;
  options.max_resets_per_second = 20;
  const auto shared = std::make_shared<Shared>(options, TestMethods(), poller);
  {
    Client client(shared);
    client.Send({NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN});
    Play(input, &client);
  }
  Expect(shared->connections.count() == 0, "a connection is left");
  Expect(shared->calls == 0, "a call is left");
  Expect(poller->hosts().unread.bytes() == 0, "a byte that was not read is left");
}

}  // namespace
}  // namespace colcast::http2

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  colcast::http2::Serve({reinterpret_cast<const char*>(data), size});
  return 0;
}
