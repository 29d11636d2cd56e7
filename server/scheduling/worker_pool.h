// The workers, and the bounded queue from which they take requests.
//
// Each worker dequeues one request, together with those that may run with it, and runs them to
// completion on its own thread. A request is dropped immediately if the queue is full, and when its
// turn comes if its deadline has passed or its client hung up. request_queue.h defines the order.
//
// The worker that became idle last takes the next request: its core's caches and its thread's
// memory are still warm, and under light load the other workers stay asleep. A request that finds
// an idle worker is taken immediately, without being described first; it can find companions once
// the worker has read it (TakeCompanions).
//
// long_requests.h describes the threads beside the workers.
#ifndef COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_
#define COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/thread.h"
#include "server/scheduling/event_source.h"
#include "server/scheduling/idle_workers.h"
#include "server/scheduling/job.h"
#include "server/scheduling/long_requests.h"
#include "server/scheduling/request_queue.h"
#include "server/scheduling/run_memory.h"

namespace colcast::scheduling {

class WorkerPool {
 public:
  struct Options {
    int num_workers = 1;
    int max_queued_requests = 1000;
    // Whether to describe requests even if a worker is idle, because they may have to wait for
    // others.
    bool describe_all = false;
    // A request estimated to take longer is a long one.
    Clock::duration longest_slice = std::chrono::milliseconds(2);
    // The nice(7) value of the threads that run long requests beside short ones. With 0 there are
    // none, except in a pool with one worker, and a short request may wait for a slice of a long
    // one.
    int long_request_nice = 0;
    RunMemory::Options memory;
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

  // Called once a worker knows the profile of a job that it dequeued after a wait of `waited`. If
  // the job may be joined, and other jobs wait or its class has a timeout, requeues it in its
  // original place. Otherwise returns false and changes nothing.
  bool SubmitAgain(Job* job, Clock::duration waited);

  // For a worker that runs a job alone and now knows its profile: takes the waiting jobs that may
  // run with it.
  void TakeCompanions(const JobProfile& profile, std::vector<Taken>* companions);

  // For a worker or a long-request thread: queues slices of a dequeued request, or all of it, for
  // any of those threads. They wait as if the request had arrived at `since` with cost `cost`.
  void SubmitSlices(const std::vector<Job*>& slices, Clock::time_point since, Clock::duration cost);

  // Queues the next slice of a request that has already run some. It counts as arriving now; `cost`
  // is its estimated time, and `left` that of all remaining rows.
  void SubmitNextSlice(Job* slice, Clock::duration cost, Clock::duration left);

  // The resources that a run has reserved.
  struct Share {
    RunMemory::Share memory;
    LongRuns::Place worker;
  };

  // For a worker or a long-request thread, before a run begins. Also returns kLater for a run that
  // would occupy the last worker for long while short requests arrive. On kLater, call
  // SubmitForLater().
  RunMemory::Answer Reserve(const RunNeeds& needs, Share* share);

  // Queues a job for which Reserve() answered kLater, in its original place, until what it needs is
  // free.
  void SubmitForLater(Job* job, const RunNeeds& needs, Clock::time_point since,
                      Clock::duration cost);

  const Options& options() const { return options_; }
  ShortRequests& short_requests() { return short_requests_; }

  // The number of waiting requests.
  int queued() const { return num_queued_.load(std::memory_order_relaxed); }
  // Idle workers whose cores no extra thread is using.
  int idle_workers() const { return std::max(0, idle_.count() - long_.running()); }
  int64_t dropped(DropReason reason) const {
    return dropped_[static_cast<int>(reason)].load(std::memory_order_relaxed);
  }

 private:
  void Stop();
  void Work(int number, bool* has_run);
  // Returns when a job is ready, or when the pool is stopping.
  void WaitForWork(std::unique_lock<std::mutex>* lock, IdleWorkers::Waiter* waiter);
  void WorkOnLong(int number);
  void NoteQueued();
  // Workers that are idle or about to take a job.
  int FreeWorkers() const { return options_.num_workers - num_running_; }
  // Drops jobs that were cancelled or whose deadline has passed.
  void DropEnded(std::vector<Taken>* taken);
  void RunTaken(Taken next, std::vector<Taken>* companions);
  void Drop(Job* job, DropReason reason);
  void DropAll(const std::vector<Job*>& jobs, DropReason reason);

  const Options options_;
  RunMemory memory_;
  LongRuns long_runs_;
  ShortRequests short_requests_;
  mutable std::mutex mutex_;
  IdleWorkers idle_;
  int num_running_ = 0;  // number of workers that are running a job
  LongRequests long_;
  std::atomic<int> num_queued_{0};
  RequestQueue queue_;
  bool stopping_ = false;
  std::array<std::atomic<int64_t>, kNumDropReasons> dropped_{};
  std::vector<Thread> workers_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_
