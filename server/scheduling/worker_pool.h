// The workers, and the bounded queue they take requests from.
//
// Each worker takes one request, with those that may run together with it, and runs them to the
// end on its own thread. What cannot be answered in time is never started: a request whose deadline
// has passed or whose client hung up is dropped when its turn comes, and one that finds the queue
// full is dropped at once. request_queue.h has the order.
//
// Of the workers that are idle, the one that became so last takes the next request: its core's
// caches and its thread's memory are still warm, and under light load the others stay asleep. A
// request that finds an idle worker is not asked what it is: it is taken at once, and can find
// company once the worker has read it (TakeCompanions).
//
// long_requests.h has the threads beside them.
#ifndef COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_
#define COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/scheduling/event_source.h"
#include "server/scheduling/idle_workers.h"
#include "server/scheduling/job.h"
#include "server/scheduling/long_requests.h"
#include "server/scheduling/long_runs.h"
#include "server/scheduling/request_queue.h"
#include "server/scheduling/run_memory.h"
#include "server/scheduling/slice_size.h"

namespace colcast::scheduling {

class WorkerPool {
 public:
  struct Options {
    int num_workers = 1;
    int max_queued_requests = 1000;
    // Requests that find an idle worker may have to wait for company, too.
    bool describe_all = false;
    // What is estimated to take longer is a long request.
    Clock::duration longest_slice = std::chrono::milliseconds(2);
    // How nice (nice(7)) the threads are that run long requests beside short ones. 0: there are
    // none, and a short request may have to wait for a slice of a long one.
    int long_request_nice = 0;
    RunMemory::Options memory;
    EventSource* events = nullptr;  // outlives the pool; null: workers wait for jobs only
    std::string thread_name = "worker";
    std::function<Clock::time_point()> now = Clock::now;
  };

  // Requires num_workers >= 1 and max_queued_requests >= 1.
  explicit WorkerPool(Options options);
  // Drops what waits (kShutdown) and waits for what runs.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs the job later on a worker, or drops it now.
  void Submit(Job* job);

  // From a worker that has taken the job, after it had waited for `waited`, and has learned what it
  // is: if it may run with others, and some wait or its class waits for them, it waits once more,
  // as if it had never been taken. False if not: nothing has happened.
  bool SubmitAgain(Job* job, Clock::duration waited);

  // From a worker that runs a job alone and has learned what it is: takes what waits and may run
  // with it.
  void TakeCompanions(const JobProfile& profile, std::vector<Taken>* companions);

  // From a worker or where long requests run: runs slices of a request that was taken, or all of
  // it, on any workers or where long requests run, in the place of one that arrived at `since` and
  // takes `cost`.
  void SubmitSlices(const std::vector<Job*>& slices, Clock::time_point since, Clock::duration cost);

  // The same, of a request that has run some of its slices already: one more of them, which takes
  // `cost`. It waits as if it were a request that arrives now. `left`: what all that is left takes.
  void SubmitNextSlice(Job* slice, Clock::duration cost, Clock::duration left);

  // What all runs share, held by one of them.
  struct Share {
    RunMemory::Share memory;
    LongRuns::Place worker;
  };

  // From a worker or where long requests run, before a run begins. kLater also for one that would
  // hold the last worker for long while short requests come: SubmitForLater() then.
  RunMemory::Answer Reserve(const RunNeeds& needs, Share* share);

  // A job that was taken, and for which Reserve() answered kLater, waits in its place until what
  // it needs is free.
  void SubmitForLater(Job* job, const RunNeeds& needs, Clock::time_point since,
                      Clock::duration cost);

  // Of all runs together.
  int64_t max_run_bytes() const { return memory_.max_bytes(); }

  // Whether something that takes so long is to run on a thread of lower priority now: short
  // requests ran in the last second.
  bool GivesWay(Clock::duration cost) const { return long_.GivesWay(cost); }
  // Whether the calling thread is one of those beside the workers, of any pool.
  static bool ThisThreadGivesWay() { return LongRequests::ThisThreadGivesWay(); }
  // Whether it is of lower priority than they are: others' work counts in its time.
  static bool ThisThreadIsNice() { return LongRequests::ThisThreadIsNice(); }
  // What a request that was taken, and that takes `cost`, is to be split for now.
  SliceNeeds NeedsOf(Clock::duration cost) const;
  // From what on a request is a long one.
  Clock::duration longest_slice() const { return options_.longest_slice; }
  void NoteShortRequest() { long_.NoteShortRequest(); }

  int queued() const { return num_queued_.load(std::memory_order_relaxed); }  // requests
  int num_workers() const { return options_.num_workers; }
  int idle_workers() const { return idle_.count(); }
  int64_t dropped(DropReason reason) const {
    return dropped_[static_cast<int>(reason)].load(std::memory_order_relaxed);
  }

  // Implementation details follow.
 private:
  void Work(int number);
  // Returns when there is something to take, or with the pool stopping.
  void WaitForWork(std::unique_lock<std::mutex>* lock, IdleWorkers::Waiter* waiter);
  void WorkOnLong(int number);
  void NoteQueued();
  // Workers that run nothing, be they idle or about to take something.
  int FreeWorkers() const { return options_.num_workers - num_running_; }
  // Drops those that nobody waits for any more.
  void DropEnded(std::vector<Taken>* taken);
  void RunTaken(Taken next, std::vector<Taken>* companions);
  void Drop(Job* job, DropReason reason);
  void DropAll(const std::vector<Job*>& jobs, DropReason reason);

  const Options options_;
  RunMemory memory_;
  LongRuns long_runs_;
  mutable std::mutex mutex_;
  IdleWorkers idle_;
  int num_running_ = 0;  // workers that run what they took
  LongRequests long_;
  std::atomic<int> num_queued_{0};
  RequestQueue queue_;
  bool stopping_ = false;
  std::array<std::atomic<int64_t>, kNumDropReasons> dropped_{};
  std::vector<std::thread> workers_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_WORKER_POOL_H_
