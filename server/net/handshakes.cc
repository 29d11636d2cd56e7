#include "server/net/handshakes.h"

#include <pthread.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "server/base/thread.h"

namespace colcast::net {
namespace {

using scheduling::Clock;

constexpr std::chrono::seconds kPatience(20);
constexpr std::chrono::seconds kTick(1);

}  // namespace

class Handshakes::Handshake final : public Pollable,
                                    public std::enable_shared_from_this<Handshake> {
 public:
  Handshake(Handshakes* all, std::unique_ptr<Socket> socket, std::string peer,
            std::shared_ptr<Host> host)
      : all_(*all), socket_(std::move(socket)), peer_(std::move(peer)), host_(std::move(host)) {}

  void Begin() {
    const std::lock_guard<std::mutex> lock(mutex_);
    number_ = all_.poller_.Add(socket_->fd(), shared_from_this(), /*is_new=*/true);
  }

  void Happened(uint32_t) override {
    std::unique_ptr<Socket> done;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (socket_ == nullptr) return;
      const Socket::Result result = socket_->Handshake();
      if (result == Socket::Result::kAgain) return;
      const bool is_served = result == Socket::Result::kDone || socket_->got_plain_http();
      std::unique_ptr<Socket> ended = End();
      if (is_served) {
        done = std::move(ended);
      } else {
        // Shuts the connection down first, since just closing the descriptor could reset it and
        // lose sent data.
        ended->Close();
      }
    }
    if (done != nullptr) all_.accept_(std::move(done), peer_);
  }
  void LookAtTheTime() override {
    if (Clock::now() - began_ >= kPatience) CloseAtOnce();
  }
  void CloseAtOnce() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (socket_ != nullptr) End()->Close();
  }

 private:
  std::unique_ptr<Socket> End() {
    all_.poller_.Remove(socket_->fd(), number_);
    return std::move(socket_);
  }

  Handshakes& all_;
  std::mutex mutex_;                // guards the members below
  std::unique_ptr<Socket> socket_;  // null when the handshake has ended
  uint64_t number_ = 0;
  const std::string peer_;
  const std::shared_ptr<Host> host_;  // held to count the host's handshakes
  const Clock::time_point began_ = Clock::now();
};

Handshakes::Handshakes(Accept accept)
    : accept_(std::move(accept)), thread_("handshakes", [this] { Run(); }) {}

Handshakes::~Handshakes() { End(); }

void Handshakes::End() {
  if (ended_.exchange(true)) return;
  poller_.Wake();
  thread_.join();
  for (const auto& each : poller_.All()) each->CloseAtOnce();
}

void Handshakes::Begin(std::unique_ptr<Socket> socket, std::string peer) {
  std::shared_ptr<Host> host = poller_.hosts().Of(peer);
  if (host.use_count() > kMaxPerHost) return;
  std::make_shared<Handshake>(this, std::move(socket), std::move(peer), std::move(host))->Begin();
}

void Handshakes::Run() {
  pthread_setname_np(pthread_self(), "handshakes");
  LowerThisThreadsPriority();
  Clock::time_point next = Clock::now() + kTick;
  while (!ended_) {
    poller_.Poll(next);
    if (Clock::now() < next) continue;
    next = Clock::now() + kTick;
    for (const auto& each : poller_.All()) each->LookAtTheTime();
  }
}

}  // namespace colcast::net
