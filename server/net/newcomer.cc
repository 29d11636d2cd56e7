#include "server/net/newcomer.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/net/connection.h"

namespace colcast::net {
namespace {

using scheduling::Clock;

constexpr std::chrono::seconds kPatience(20);
// HTTP/2's preface; no HTTP/1 request begins like this.
constexpr std::string_view kHttp2Begins = "PRI ";

struct Protocol {
  Accept http1;
  Accept http2;
};

class Newcomer final : public Connection {
 public:
  Newcomer(Poller* poller, std::unique_ptr<Socket> socket, std::string peer,
           std::shared_ptr<const Protocol> serve)
      : Connection(poller, *socket, std::move(peer)),
        socket_(std::move(socket)),
        serve_(std::move(serve)) {}

  void Start() { Begin(); }

 private:
  Use DoNow(unsigned work) override {
    if (socket_ == nullptr) return {};
    const bool is_late = (work & kTime) != 0 && Clock::now() - began_ >= kPatience;
    if (is_late || (work & kClose) != 0) {
      Close();
    } else if ((work & ~kTime) != 0) {
      Ask((work & kReadToEnd) != 0);
      return {0, 0, 1};
    }
    return {};
  }

  void Ask(bool at_end) {
    std::array<uint8_t, kHttp2Begins.size()> bytes;
    size_t size = bytes.size();
    const Socket::Result result = socket_->Peek(bytes.data(), &size);
    if (result == Socket::Result::kClosed) return Close();
    if (result == Socket::Result::kAgain) return;
    const std::string_view begin(reinterpret_cast<const char*>(bytes.data()), size);
    const bool is_http1 = begin != kHttp2Begins.substr(0, size);
    if (!is_http1 && size < kHttp2Begins.size()) {
      if (at_end) Close();  // the unread bytes would otherwise hide that the client has hung up
      return;
    }
    End();
    (is_http1 ? serve_->http1 : serve_->http2)(std::move(socket_), peer());
  }

  void Close() override {
    if (socket_ == nullptr) return;
    End();
    socket_->Close();
    socket_.reset();
  }

  std::unique_ptr<Socket> socket_;  // null after it was handed on or closed
  const std::shared_ptr<const Protocol> serve_;
  const Clock::time_point began_ = Clock::now();
};

}  // namespace

Accept ByProtocol(Poller* poller, Accept http1, Accept http2) {
  const auto serve = std::make_shared<const Protocol>(Protocol{std::move(http1), std::move(http2)});
  return [poller, serve](std::unique_ptr<Socket> socket, std::string peer) {
    if (socket->protocol() == "h2") return serve->http2(std::move(socket), std::move(peer));
    // HTTP/1 answers plain HTTP with a hint to use TLS.
    if (socket->is_tls() || socket->got_plain_http()) {
      return serve->http1(std::move(socket), std::move(peer));
    }
    std::make_shared<Newcomer>(poller, std::move(socket), std::move(peer), serve)->Start();
  };
}

}  // namespace colcast::net
