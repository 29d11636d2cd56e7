// libFuzzer target: feeds a client's bytes to an HTTP/1 Connection. The server's output must begin
// like an answer. After the client has hung up, the counts of connections and of body bytes must
// be 0.
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/fuzz/client_socket.h"
#include "server/http1/connection.h"
#include "server/net/poller.h"

namespace colcast::http {
namespace {

// Requests to /h that wait for AnswerHeld(), which runs at the latest after the connection has
// ended.
std::vector<std::shared_ptr<Exchange>>* Held() {
  static auto* const held = new std::vector<std::shared_ptr<Exchange>>;
  return held;
}

void AnswerHeld() {
  for (const auto& exchange : std::exchange(*Held(), {})) {
    exchange->Answer(ErrorResponse(400, exchange->cancelled() ? "gone" : "held"));
  }
}

Router TestRouter() {
  Router router;
  router.AddPage("/", [] {
    Response page;
    page.body = std::string(10'000, 'x');
    return page;
  });
  router.AddTree("/e", [](const std::shared_ptr<Exchange>& exchange) {
    Response echo;
    echo.body = exchange->request().body.bytes().ToString();
    exchange->Answer(std::move(echo));
  });
  router.AddTree(
      "/h", [](std::shared_ptr<Exchange> exchange) { Held()->push_back(std::move(exchange)); });
  return router;
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
      if ((what & 2) != 0) connection->Stop();
      if ((what & 4) != 0) connection->CloseAtOnce();
    }
    if ((what & 8) != 0) AnswerHeld();
    if ((what & 16) != 0) Read();
    if ((what & 32) != 0) shared_->draining = true;
    if ((what & 64) != 0) shutdown(socket_.fd(), SHUT_WR);
    Poll();
  }

  void HangUp() {
    Read();
    shutdown(socket_.fd(), SHUT_RDWR);
    for (int turn = 0; turn < kMaxTurns && !shared_->poller->All().empty(); ++turn) {
      AnswerHeld();
      Poll();
    }
    AnswerHeld();
    // A connection that has wasted time does not read again until its timer runs.
    for (const auto& each : shared_->poller->All()) each->PostTimer();
  }

 private:
  static constexpr int kMaxTurns = 1000;  // each turn reads one request

  void Poll() { shared_->poller->Poll(scheduling::Clock::time_point::min()); }
  void Read() {
    constexpr std::string_view kAnswer = "HTTP/1.1 ";
    std::array<char, 4096> bytes;
    for (;;) {
      const ssize_t size = recv(socket_.fd(), bytes.data(), bytes.size(), 0);
      if (size <= 0) return;
      const std::string_view got(bytes.data(), static_cast<size_t>(size));
      if (begin_.size() < kAnswer.size()) begin_ += got.substr(0, kAnswer.size() - begin_.size());
      Expect(kAnswer.substr(0, begin_.size()) == begin_, "the server's output is not an answer");
    }
  }

  const std::shared_ptr<Shared> shared_;
  ClientSocket socket_;
  std::string begin_;  // the start of the received bytes
};

void Serve(std::string_view input) {
  static auto* const poller = new net::Poller(32 << 20, /*max_body_bytes=*/512);
  HttpServer::Options options;
  options.max_header_bytes = 256;
  options.max_body_bytes = 1024;
  options.idle_timeout = options.transfer_timeout = std::chrono::milliseconds(0);
  static const Router router = TestRouter();
  const auto shared = std::make_shared<Shared>(options, &router, poller);
  {
    Client client(shared);
    Play(input, &client);
  }
  Expect(shared->connections.count() == 0, "a connection is left");
  Expect(poller->hosts().unread.bytes() == 0, "a byte that was not read is left");
  Expect(poller->hosts().bodies.bytes() == 0, "a byte of a body is left");
}

}  // namespace
}  // namespace colcast::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  colcast::http::Serve({reinterpret_cast<const char*>(data), size});
  return 0;
}
