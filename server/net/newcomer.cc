#include "server/net/newcomer.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/net/connection.h"

namespace colcast::net {
namespace {

using scheduling::Clock;

constexpr std::chrono::seconds kPatience(20);
// What no request of HTTP/1 begins with: HTTP/2's preface has it to be told by.
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
  Sent DoNow(unsigned work) override {
    if (socket_ != nullptr) Ask(work);
    return Sent::kNothing;
  }

  void Ask(unsigned work) {
    const bool late = (work & kTime) != 0 && Clock::now() - began_ >= kPatience;
    if (late || (work & kClose) != 0) return Close();
    const Accept* accept = nullptr;
    const Socket::Result result = socket_->is_tls() ? AskTls(&accept) : AskBytes(&accept);
    if (result == Socket::Result::kClosed) return Close();
    if (accept == nullptr) return;
    End();
    (*accept)(std::move(socket_), peer());
  }

  Socket::Result AskTls(const Accept** accept) {
    const Socket::Result result = socket_->Handshake();
    if (socket_->got_plain_http()) {
      *accept = &serve_->http1;  // which says so
      return Socket::Result::kDone;
    }
    if (result == Socket::Result::kDone) {
      *accept = socket_->protocol() == "h2" ? &serve_->http2 : &serve_->http1;
    }
    return result;
  }

  Socket::Result AskBytes(const Accept** accept) const {
    std::array<uint8_t, kHttp2Begins.size()> bytes;
    size_t size = bytes.size();
    const Socket::Result result = socket_->Peek(bytes.data(), &size);
    if (result != Socket::Result::kDone) return result;
    const std::string_view begin(reinterpret_cast<const char*>(bytes.data()), size);
    if (begin == kHttp2Begins) {
      *accept = &serve_->http2;
    } else if (begin != kHttp2Begins.substr(0, size)) {
      *accept = &serve_->http1;
    }
    return result;
  }

  void Close() override {
    if (socket_ == nullptr) return;
    End();
    socket_->Close();
    socket_.reset();
  }

  std::unique_ptr<Socket> socket_;  // null: handed on, or closed
  const std::shared_ptr<const Protocol> serve_;
  const Clock::time_point began_ = Clock::now();
};

}  // namespace

Accept ByProtocol(Poller* poller, Accept http1, Accept http2) {
  const auto serve = std::make_shared<const Protocol>(Protocol{std::move(http1), std::move(http2)});
  return [poller, serve](std::unique_ptr<Socket> socket, std::string peer) {
    std::make_shared<Newcomer>(poller, std::move(socket), std::move(peer), serve)->Start();
  };
}

}  // namespace colcast::net
