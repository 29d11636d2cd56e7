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

Standby::~Standby() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ending_.notify_all();
}

void Standby::Run() {
  pthread_setname_np(pthread_self(), "sockets");
  Clock::time_point looked = Clock::now();
  int64_t turns = poller_.turns();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_.wait_for(lock, kLookEvery,
                           [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; })) {
    lock.unlock();
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
    lock.lock();
  }
}

}  // namespace colcast::net
