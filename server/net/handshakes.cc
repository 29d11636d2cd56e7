#include "server/net/handshakes.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "server/net/connection.h"

namespace colcast::net {

class Handshakes::Handshake final : public Newcomer {
 public:
  Handshake(Handshakes* all, std::unique_ptr<Socket> socket, std::string peer)
      : Newcomer(&all->poller_, std::move(socket), std::move(peer)), accept_(all->accept_) {}

 private:
  void Ask(bool) override {
    const Socket::Result result = socket().Handshake();
    if (result == Socket::Result::kAgain) return;
    if (result != Socket::Result::kDone && !socket().got_plain_http()) return Close();
    accept_(TakeSocket(), peer());
  }

  const Accept& accept_;
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
  // Each unfinished handshake holds a reference to its host.
  if (poller_.hosts().Of(peer).use_count() > kMaxPerHost) return;
  std::make_shared<Handshake>(this, std::move(socket), std::move(peer))->Begin();
}

void Handshakes::Run() {
  using scheduling::Clock;
  constexpr std::chrono::seconds kTick(1);
  pthread_setname_np(pthread_self(), "handshakes");
  LowerThisThreadsPriority();
  Clock::time_point next = Clock::now() + kTick;
  while (!ended_) {
    poller_.Poll(next);
    if (Clock::now() < next) continue;
    next = Clock::now() + kTick;
    for (const auto& each : poller_.All()) each->PostTimer();
  }
}

}  // namespace colcast::net
