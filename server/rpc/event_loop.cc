#include "server/rpc/event_loop.h"

#include <grpc/support/time.h>

#include <chrono>

namespace colcast::rpc {
namespace {

using NextStatus = grpc::CompletionQueue::NextStatus;
using WallClock = std::chrono::system_clock;

// How long the end of a call may wait on a server that has nothing else to do.
constexpr std::chrono::milliseconds kLongestWait(100);

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
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { Run(); });
}

void EventLoop::Run() {
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    const NextStatus next = arrivals_->AsyncNext(&tag, &ok, WallClock::now() + kLongestWait);
    if (next == NextStatus::SHUTDOWN) return;
    if (next == NextStatus::GOT_EVENT) {
      Handle(tag, ok);
    } else {
      while (HandleEnding()) {
      }
    }
  }
}

void EventLoop::Shutdown() {
  arrivals_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  endings_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (endings_.Next(&tag, &ok)) Handle(tag, ok);
}

}  // namespace colcast::rpc
