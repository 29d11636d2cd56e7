#include "server/net/standby.h"

#include <pthread.h>

#include <chrono>

namespace colcast::net {
namespace {

using scheduling::Clock;

// How often to check whether any thread waits for the sockets.
constexpr std::chrono::milliseconds kLookEvery(20);
constexpr std::chrono::seconds kLookAtTimeEvery(1);

}  // namespace

Standby::Standby(Poller* poller) : poller_(*poller), thread_("the sockets", [this] { Run(); }) {}

void Standby::Run() {
  pthread_setname_np(pthread_self(), "sockets");
  Clock::time_point looked = Clock::now();
  int64_t turns = poller_.turns();
  while (!ending_.WaitFor(kLookEvery)) {
    // If threads wait, they take the turns. If none waits, and none has polled since the last
    // check, all are busy.
    bool woken = false;
    while (!woken && poller_.waiting() == 0 && poller_.turns() == turns && !look_now_ &&
           Clock::now() - looked < kLookAtTimeEvery) {
      woken = poller_.Poll(Clock::now() + kLookEvery);
      ++turns;
    }
    if (woken) poller_.Wake();  // the wake-up was meant for a worker
    turns = poller_.turns();
    if (look_now_.exchange(false) || Clock::now() - looked >= kLookAtTimeEvery) {
      looked = Clock::now();
      for (const auto& each : poller_.All()) each->LookAtTheTime();
    }
  }
}

}  // namespace colcast::net
