// The workers, and the bounded queue of requests.
//
// Each worker dequeues a request, along with others that may run with it, and runs them to
// completion on its own thread. A request is dropped immediately if the queue is full. It is
// dropped when its turn comes if its deadline has passed or its client has hung up. request_queue.h
// defines the order.
//
// A request that finds an idle worker is taken immediately, before its profile is known; once the
// worker has read it, TakeCompanions() finds companions.
//
// long_requests.h describes the extra threads.
#ifndef COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_
#define COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_

#include <absl/functional/function_ref.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/thread.h"
#include "server/scheduling/long_requests.h"
#include "server/scheduling/request_queue.h"

namespace colcast::scheduling {

// Delivers events, such as requests arriving on sockets, to workers that wait for jobs.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Waits for an event, Wake(), or the given time, and handles events on the calling thread;
  // handlers may submit jobs. With Clock::time_point::min(), handles pending events without
  // waiting. Returns whether Wake() ended the wait. Any number of threads may call it.
  virtual bool Poll(Clock::time_point until) = 0;
  // Makes one thread return from Poll(): one that is waiting, or else the next one to wait. Several
  // calls may count as one.
  virtual void Wake() = 0;
};

// The idle workers, which wait in EventSource::Poll(), so that the worker that reads a request also
// runs it. All methods except count() REQUIRE the pool's lock.
class IdleWorkers {
 public:
  // `events` must outlive this object; null if workers wait only for jobs.
  explicit IdleWorkers(EventSource* events);
  ~IdleWorkers();

  // The number of idle workers that have not been woken.
  int count() const { return count_.load(std::memory_order_relaxed); }

  // Wakes a worker, if any is idle.
  void WakeOne();

  // Wakes one worker for shutdown. The worker must call this again to wake the next one.
  void WakeAll() { events_->Wake(); }

  // Waits until woken, but no longer than `wait`. Releases the lock while waiting.
  void Wait(std::unique_lock<std::mutex>* lock, Clock::duration wait);

  // Handles pending events, so that requests still in the sockets are ordered and joined with those
  // in the queue. Does nothing while other workers are idle, because they handle events.
  void HandleEvents(std::unique_lock<std::mutex>* lock);

 private:
  void NoteCount();

  const std::unique_ptr<EventSource> only_jobs_;  // set if there are no other events
  EventSource* const events_;
  std::atomic<int> count_{0};
  int num_waiting_ = 0;  // number of workers in Poll()
  int num_called_ = 0;   // number of workers in Poll() that have been woken
};

class WorkerPool {
 public:
  struct Options {
    int num_workers = 1;
    int max_queued_requests = 1000;
    // Whether to call Job::Describe() even if a worker is idle, because requests may have to wait
    // for others.
    bool describe_all = false;
    // A request estimated to take longer than this counts as long. Also limits the slices of long
    // requests while short ones run; slices that give way to short requests may be longer.
    Clock::duration longest_slice = std::chrono::milliseconds(2);
    // The nice(7) value of the threads that run long requests alongside short ones. With 0, only a
    // pool with one worker has such a thread, and a short request may wait for a slice of a long
    // request.
    int long_request_nice = 0;
    RunBudget::Options memory;
    EventSource* events = nullptr;  // must outlive the pool; null if workers wait only for jobs
    std::string thread_name = "worker";
    std::function<Clock::time_point()> now = Clock::now;
  };

  // REQUIRES num_workers >= 1 and max_queued_requests >= 1.
  explicit WorkerPool(Options options);
  // Drops the waiting jobs (kShutdown) and waits for the running ones.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Queues the job for a worker, or drops it immediately.
  void Submit(Job* job);

  // Call once a worker knows the profile of a job that it dequeued after a wait of `waited`. If the
  // job may be joined, and other jobs wait or its class has a timeout, requeues it in its original
  // place. Otherwise returns false and changes nothing.
  bool SubmitAgain(Job* job, Clock::duration waited);

  // Dequeues companions. Call when a worker that runs a job alone knows the job's profile.
  void TakeCompanions(const JobProfile& profile, std::vector<Taken>* companions);

  // Queues a dequeued request, whole or in slices, for any worker or extra thread. They wait as
  // if the request had arrived at `since` with cost `cost`. Call on one of these threads.
  void SubmitSlices(const std::vector<Job*>& slices, Clock::time_point since, Clock::duration cost);

  // Queues the next slice of a request that has already run some. It counts as arriving now. `cost`
  // is the slice's estimated time, `left` that of all remaining rows.
  void SubmitNextSlice(Job* slice, Clock::duration cost, Clock::duration left);

  // The resources that a run has reserved.
  struct Share {
    RunBudget::Share memory;
    RunBudget::Share worker;
  };

  // Call on a worker or an extra thread before a run begins. Returns kLater also for a run that
  // would occupy the last worker for long while short requests arrive. After kLater, call
  // SubmitForLater().
  RunBudget::Answer Reserve(const RunNeeds& needs, Share* share);

  // Queues a job for which Reserve() returned kLater, in its original place, until the resources
  // that it needs are available.
  void SubmitForLater(Job* job, const RunNeeds& needs, Clock::time_point since,
                      Clock::duration cost);

  const Options& options() const { return options_; }
  ShortRequests& short_requests() { return short_requests_; }

  // The number of waiting requests.
  int queued() const { return num_queued_.load(std::memory_order_relaxed); }
  // The number of idle workers whose cores no extra thread is using.
  int idle_workers() const { return std::max(0, idle_.count() - long_.running()); }
  int64_t dropped(DropReason reason) const {
    return dropped_[static_cast<int>(reason)].load(std::memory_order_relaxed);
  }

 private:
  void Stop();
  // Calls `add`, which queues jobs, unless the pool is stopping. Returns whether it did.
  bool AddUnlessStopping(absl::FunctionRef<void()> add);
  void Work(int number, bool* has_run);
  // Returns when a job is ready or the pool is stopping.
  void WaitForWork(std::unique_lock<std::mutex>* lock);
  void WorkOnLong(int number);
  void NoteQueued();
  // The number of workers that are idle or about to take a job.
  int FreeWorkers() const { return options_.num_workers - num_running_; }
  // Drops cancelled and expired jobs.
  void DropEnded(std::vector<Taken>* taken);
  void RunTaken(Taken next, std::vector<Taken>* companions);
  void Drop(Job* job, DropReason reason);
  void DropAll(const std::vector<Job*>& jobs, DropReason reason);

  const Options options_;
  RunBudget memory_;
  // Limits long runs that cannot be split: one worker stays free while short requests arrive.
  RunBudget long_runs_;
  ShortRequests short_requests_;
  mutable std::mutex mutex_;
  IdleWorkers idle_;
  int num_running_ = 0;  // number of workers running a job
  LongRequests long_;
  std::atomic<int> num_queued_{0};
  RequestQueue queue_;
  bool stopping_ = false;
  std::array<std::atomic<int64_t>, kNumDropReasons> dropped_{};
  std::vector<Thread> workers_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_
