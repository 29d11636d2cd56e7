#include "server/scheduling/idle_workers.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>

namespace colcast::scheduling {
namespace {

// kFirst: this thread is an idle worker that handles events; it will run the first job that they
// submit. kAlso: it already has that job.
enum class EventsComeHere { kNo, kFirst, kAlso };
thread_local EventsComeHere events_come_here = EventsComeHere::kNo;

}  // namespace

void IdleWorkers::NoteCount() {
  const int idle = events_ == nullptr ? static_cast<int>(waiting_.size())
                                      : std::max(0, num_waiting_ - num_called_);
  count_.store(idle, std::memory_order_relaxed);
}

void IdleWorkers::WakeOne() {
  if (events_ != nullptr) {
    if (count() == 0) return;
    ++num_called_;
    NoteCount();
    if (events_come_here == EventsComeHere::kFirst) {
      events_come_here = EventsComeHere::kAlso;
    } else {
      events_->Wake();
    }
    return;
  }
  if (waiting_.empty()) return;
  Waiter* const last = waiting_.back();
  waiting_.pop_back();
  NoteCount();
  last->woken = true;
  last->wakeup.notify_one();
}

void IdleWorkers::WakeAll() {
  while (!waiting_.empty()) WakeOne();
  if (events_ != nullptr) events_->Wake();
}

void IdleWorkers::Wait(std::unique_lock<std::mutex>* lock, Waiter* waiter, Clock::time_point now,
                       Clock::time_point until) {
  if (events_ != nullptr) return WaitForEvents(lock, until);
  waiter->woken = false;
  waiting_.push_back(waiter);
  NoteCount();
  if (until == Clock::time_point::max()) {
    waiter->wakeup.wait(*lock, [waiter] { return waiter->woken; });
  } else if (!waiter->wakeup.wait_for(*lock, until - now, [waiter] { return waiter->woken; })) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), waiter));
    NoteCount();
  }
}

void IdleWorkers::WaitForEvents(std::unique_lock<std::mutex>* lock, Clock::time_point until) {
  ++num_waiting_;
  NoteCount();
  lock->unlock();
  events_come_here = EventsComeHere::kFirst;
  bool woken = false;
  const absl::Cleanup back = [&] {  // also runs after an exception
    const bool has_job = events_come_here == EventsComeHere::kAlso;
    events_come_here = EventsComeHere::kNo;
    lock->lock();
    --num_waiting_;
    // Several Wake() calls may count as one. So the woken worker answers for all of them, and wakes
    // others if more jobs remain.
    num_called_ = woken ? 0 : std::max(0, num_called_ - (has_job ? 1 : 0));
    NoteCount();
  };
  woken = events_->Poll(until);
}

void IdleWorkers::HandleEvents(std::unique_lock<std::mutex>* lock) {
  if (events_ == nullptr || count() > 0) return;
  lock->unlock();
  const bool woken = events_->Poll(Clock::time_point::min());
  lock->lock();
  if (!woken) return;
  // The wake-up was meant for an idle worker, but this worker takes the job instead.
  num_called_ = 0;
  NoteCount();
}

}  // namespace colcast::scheduling
