// Workers that have nothing to run. Each waits on its own or, where workers handle events, for
// these; then one that is called takes what has come itself, if it is the one that read it.
#ifndef COLCAST_SERVER_SCHEDULING_IDLE_WORKERS_H_
#define COLCAST_SERVER_SCHEDULING_IDLE_WORKERS_H_

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "server/scheduling/event_source.h"
#include "server/scheduling/job.h"

namespace colcast::scheduling {

// All methods but count() are called with the pool's lock held.
class IdleWorkers {
 public:
  // A worker's; its own thread waits on `wakeup`.
  struct Waiter {
    std::condition_variable wakeup;
    bool woken = false;
  };

  // `events` outlives them; null: workers wait for jobs only.
  explicit IdleWorkers(EventSource* events) : events_(events) {}

  // Those that are not woken already.
  int count() const { return count_.load(std::memory_order_relaxed); }
  bool wait_for_events() const { return events_ != nullptr; }

  // Wakes the one that became idle last, if there is one.
  void WakeOne();

  // For a worker that ends, and for the end of all.
  void WakeAll();

  // Waits to be woken, until then at most; without the lock meanwhile.
  void Wait(std::unique_lock<std::mutex>* lock, Waiter* waiter, Clock::time_point now,
            Clock::time_point until);

  // What has come beside what waits, which it may go before or be joined with. Not while others
  // are idle, who see to it.
  void HandleEvents(std::unique_lock<std::mutex>* lock);

 private:
  void WaitForEvents(std::unique_lock<std::mutex>* lock, Clock::time_point until);
  void NoteCount();

  EventSource* const events_;
  std::vector<Waiter*> waiting_;  // the last one became idle last
  std::atomic<int> count_{0};
  int num_waiting_ = 0;  // for events
  int num_called_ = 0;   // of those, back to the queue
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_IDLE_WORKERS_H_
