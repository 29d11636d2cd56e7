// The idle workers. Each waits on its own condition variable or, if workers handle events, in
// EventSource::Poll(). In the latter case, the worker that reads a request also runs it.
#ifndef COLCAST_SERVER_SCHEDULING_IDLE_WORKERS_H_
#define COLCAST_SERVER_SCHEDULING_IDLE_WORKERS_H_

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "server/scheduling/event_source.h"
#include "server/scheduling/job.h"

namespace colcast::scheduling {

// All methods except count() REQUIRE the pool's lock.
class IdleWorkers {
 public:
  // One waiting worker. Only that worker's thread waits on `wakeup`.
  struct Waiter {
    std::condition_variable wakeup;
    bool woken = false;
  };

  // `events` must outlive this object, or is null if workers wait only for jobs.
  explicit IdleWorkers(EventSource* events) : events_(events) {}

  // The number of idle workers that have not been woken.
  int count() const { return count_.load(std::memory_order_relaxed); }
  bool wait_for_events() const { return events_ != nullptr; }

  // Wakes the worker that most recently became idle, if any.
  void WakeOne();

  // Wakes all workers, for shutdown.
  void WakeAll();

  // Waits until woken, but no longer than `until`. Releases the lock while waiting.
  void Wait(std::unique_lock<std::mutex>* lock, Waiter* waiter, Clock::time_point now,
            Clock::time_point until);

  // Handles pending events, so that requests still in the sockets are ordered and joined with those
  // in the queue. Does nothing while other workers are idle, because they handle events.
  void HandleEvents(std::unique_lock<std::mutex>* lock);

 private:
  void WaitForEvents(std::unique_lock<std::mutex>* lock, Clock::time_point until);
  void NoteCount();

  EventSource* const events_;
  std::vector<Waiter*> waiting_;  // longest idle first
  std::atomic<int> count_{0};
  int num_waiting_ = 0;  // number of workers in Poll()
  int num_called_ = 0;   // number of workers in Poll() that have been woken
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_IDLE_WORKERS_H_
