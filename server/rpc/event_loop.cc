#include "server/rpc/event_loop.h"

#include <grpc/support/time.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace colcast::rpc {
namespace {

using NextStatus = grpc::CompletionQueue::NextStatus;
using WallClock = std::chrono::system_clock;

// How long the end of a call may wait on a server that has nothing else to do.
constexpr std::chrono::milliseconds kLongestWait(100);

// How often the thread that stands by looks, and the processor time since the look before from
// which on a poller is busy: little, since other processes may leave it little.
constexpr std::chrono::milliseconds kLookEvery(20);
constexpr std::chrono::milliseconds kBusy(2);

// Of a thread that has not been joined.
std::chrono::nanoseconds CpuTimeOf(const std::thread& thread) {
  clockid_t clock;
  timespec time{};
  const pthread_t handle = const_cast<std::thread&>(thread).native_handle();
  if (pthread_getcpuclockid(handle, &clock) == 0) clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void Handle(void* tag, bool ok) { static_cast<Event*>(tag)->Happen(ok); }

}  // namespace

void EventLoop::HandleEndings() {
  while (due_.load(std::memory_order_relaxed) > 0 && HandleEnding()) {
  }
}

bool EventLoop::HandleEnding() {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec at_once = gpr_inf_past(GPR_CLOCK_REALTIME);
  if (endings_.AsyncNext(&tag, &ok, at_once) != NextStatus::GOT_EVENT) return false;
  due_.fetch_sub(1, std::memory_order_relaxed);
  Handle(tag, ok);
  return true;
}

void EventLoop::Start(int num_threads) {
  for (int i = 0; i < num_threads; ++i) {
    Poller* const poller = &pollers_.emplace_back();
    poller->thread = std::thread([this, poller] { Run(poller); });
  }
  standby_ = std::thread([this] { StandBy(); });
}

void EventLoop::Run(Poller* poller) {
  while (HandleArrival(kLongestWait)) poller->turns.fetch_add(1, std::memory_order_relaxed);
}

bool EventLoop::HandleArrival(std::chrono::milliseconds longest_wait) {
  void* tag = nullptr;
  bool ok = false;
  const NextStatus next = arrivals_->AsyncNext(&tag, &ok, WallClock::now() + longest_wait);
  if (next == NextStatus::SHUTDOWN) return false;
  if (next == NextStatus::GOT_EVENT) {
    Handle(tag, ok);
  } else {
    while (HandleEnding()) {
    }
  }
  return true;
}

// A poller that waits uses no processor time; one that does, and takes no turn, is kept busy by a
// single event.
void EventLoop::StandBy() {
  std::vector<Progress> before = Look();
  while (SleepUntilNextLook()) {
    std::vector<Progress> now = Look();
    const bool all_busy = std::equal(
        now.begin(), now.end(), before.begin(), [](const Progress& a, const Progress& b) {
          return a.turns == b.turns && a.cpu_time - b.cpu_time >= kBusy;
        });
    if (all_busy) {
      while (!SomeoneTookATurn(now) && HandleArrival(kLookEvery)) {
      }
      now = Look();
    }
    before = std::move(now);
  }
}

bool EventLoop::SleepUntilNextLook() {
  std::unique_lock<std::mutex> lock(mutex_);
  return !ending_.wait_for(lock, kLookEvery, [this] { return ended_; });
}

std::vector<EventLoop::Progress> EventLoop::Look() const {
  std::vector<Progress> progress;
  for (const Poller& poller : pollers_) {
    progress.push_back({poller.turns.load(std::memory_order_relaxed), CpuTimeOf(poller.thread)});
  }
  return progress;
}

bool EventLoop::SomeoneTookATurn(const std::vector<Progress>& since) const {
  size_t i = 0;
  return std::any_of(pollers_.begin(), pollers_.end(), [&](const Poller& poller) {
    return poller.turns.load(std::memory_order_relaxed) != since[i++].turns;
  });
}

void EventLoop::Shutdown() {
  arrivals_->Shutdown();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ending_.notify_all();
  standby_.join();
  for (Poller& poller : pollers_) poller.thread.join();
  endings_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (endings_.Next(&tag, &ok)) Handle(tag, ok);
}

}  // namespace colcast::rpc
