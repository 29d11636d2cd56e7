// The extra threads that run long requests alongside the workers, and their queue.
//
// If `nice` is set, there is one extra thread per worker, with a lower priority. The extra threads
// run long requests while short ones arrive: a short request then finds an idle worker, and the
// kernel preempts the long request immediately. A long request starts on an extra thread when fewer
// than num_workers requests and slices are running, or when it has waited for RequestQueue::kAgeing
// times its cost or for RequestQueue::kLongestHandicap. A pool with one worker always has one extra
// thread, for runs that would occupy the worker for long; its priority is lower only if `nice` is
// set.
#ifndef COLCAST_SERVER_SCHEDULING_LONG_REQUESTS_H_
#define COLCAST_SERVER_SCHEDULING_LONG_REQUESTS_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "server/scheduling/request_queue.h"

namespace colcast::scheduling {

class IdleWorkers;

// Whether the calling thread is an extra thread of any pool.
bool ThisThreadGivesWay();
// Whether the calling thread has a lower priority than the workers. Its wall time then includes
// preemption.
bool ThisThreadIsNice();

// Tracks whether short requests arrive, so that long ones give way to them.
//
// All methods may be called from any thread.
class ShortRequests {
 public:
  // Requests that take longer than `longest_slice` are long. `may_give_way` says whether
  // low-priority threads run long requests.
  ShortRequests(Clock::duration longest_slice, bool may_give_way,
                std::function<Clock::time_point()> now);

  // Call when a short request runs.
  void Note();
  // Whether a request of this cost should now run on a low-priority thread, because it is long and
  // a short request ran within the last second.
  bool GivesWay(Clock::duration cost) const;
  // Whether a run of this length may occupy the last worker.
  bool MayTakeLastWorker(Clock::duration time) const;
  // The longest time that a slice of a request of this cost may take; Clock::duration::max() if no
  // short requests arrive.
  Clock::duration LongestSlice(Clock::duration cost) const;

 private:
  bool RanWithin(Clock::duration time) const;

  const Clock::duration longest_slice_;
  const bool may_give_way_;
  const std::function<Clock::time_point()> now_;
  std::atomic<Clock::rep> last_;
};

class LongRequests {
 public:
  struct Options {
    int num_workers = 1;
    int max_queued_requests = 1;
    int nice = 0;  // nice(7) value of the extra threads; 0 for normal priority
    std::function<Clock::time_point()> now;
  };

  explicit LongRequests(Options options);

  bool has_threads() const { return options_.nice > 0 || options_.num_workers == 1; }
  // The number of requests and slices running on the extra threads.
  int running() const { return running_.load(std::memory_order_relaxed); }

  // Makes the calling thread an extra thread.
  void BeginThread() const;

  // The following methods REQUIRE the pool's lock.
  RequestQueue& queue() { return queue_; }
  const RequestQueue& queue() const { return queue_; }
  void WakeOne() { wakeup_.notify_one(); }
  void WakeAll() { wakeup_.notify_all(); }
  // Call when a worker has become idle, and when jobs may remain after one was dequeued.
  void WakeOneForWork();

  // Waits until a job may start or `stopping` is true.
  void Wait(std::unique_lock<std::mutex>* lock, const IdleWorkers& idle, const bool& stopping);
  // Dequeues the first job and counts it as running until End(). Returns false if there is none.
  bool Take(Clock::time_point now, Taken* next);
  void End() { --running_; }

 private:
  Clock::time_point MayStartAt(Clock::time_point now, int idle_workers) const;

  const Options options_;
  RequestQueue queue_;
  std::condition_variable wakeup_;
  std::atomic<int> running_{0};
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_LONG_REQUESTS_H_
