// The extra threads that run long requests beside the workers, and the queue of those requests.
//
// With `nice` there is one such thread per worker, at a lower priority, which runs long requests
// while short ones arrive: a short request finds an idle worker, and the kernel preempts the long
// request for it immediately. A long request starts there when fewer than num_workers requests and
// slices are running, or when it has waited for RequestQueue::kAgeing times its cost or for
// RequestQueue::kLongestHandicap. A pool with a single worker always has one such thread, for runs
// that would occupy its worker for long; its priority is lower only with `nice`.
#ifndef COLCAST_SERVER_SCHEDULING_LONG_REQUESTS_H_
#define COLCAST_SERVER_SCHEDULING_LONG_REQUESTS_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "server/scheduling/idle_workers.h"
#include "server/scheduling/job.h"
#include "server/scheduling/request_queue.h"

namespace colcast::scheduling {

// Limits long runs that cannot be split: while short requests arrive, one worker stays free for
// them.
//
// All methods may be called from any thread.
class LongRuns {
 public:
  // A run's place, released by the destructor.
  class Place {
   public:
    Place() = default;
    ~Place() {
      if (of_ != nullptr) of_->running_.fetch_sub(1, std::memory_order_relaxed);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class LongRuns;
    LongRuns* of_ = nullptr;
  };

  explicit LongRuns(int num_workers) : most_(num_workers - 1) {}

  bool HasPlace() const { return running_.load(std::memory_order_relaxed) < most_; }

  // Counts a run. Returns false and changes nothing if it would occupy the last worker and
  // `may_take_last` is false.
  bool Begin(bool may_take_last, Place* place) {
    int running = running_.load(std::memory_order_relaxed);
    do {
      if (!may_take_last && running >= most_) return false;
    } while (!running_.compare_exchange_weak(running, running + 1, std::memory_order_relaxed));
    place->of_ = this;
    return true;
  }

 private:
  const int most_;
  std::atomic<int> running_{0};
};

// Whether the calling thread is a long-request thread of any pool.
bool ThisThreadGivesWay();
// Whether the calling thread has a lower priority than the workers. Its wall time then includes the
// time for which it was preempted.
bool ThisThreadIsNice();

// Tracks whether short requests arrive, to which long ones give way.
//
// All methods may be called from any thread.
class ShortRequests {
 public:
  // A request that takes longer than `longest_slice` is a long one. `may_give_way` says whether
  // threads with a lower priority run long requests.
  ShortRequests(Clock::duration longest_slice, bool may_give_way,
                std::function<Clock::time_point()> now);

  // Call when a short request runs.
  void Note();
  // Whether a request of this cost should run on a low-priority thread now, because a short request
  // ran within the last second.
  bool GivesWay(Clock::duration cost) const;
  // Whether a run of this length may occupy the last worker.
  bool MayTakeLastWorker(Clock::duration time) const;
  // How long a slice of a request of this cost may be; the greatest duration if no short requests
  // arrive.
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

  // Whether there are extra threads, one per worker.
  bool has_threads() const { return options_.nice > 0 || options_.num_workers == 1; }
  // The number of requests and slices running on the extra threads.
  int running() const { return running_.load(std::memory_order_relaxed); }

  // Sets the calling thread up as an extra thread.
  void BeginThread() const;

  // This method and all below REQUIRE the pool's lock.
  RequestQueue& queue() { return queue_; }
  const RequestQueue& queue() const { return queue_; }
  void WakeOne() { wakeup_.notify_one(); }
  void WakeAll() { wakeup_.notify_all(); }
  // Call when a worker has become idle, and when jobs may remain in the queue.
  void WakeOneForWork();

  // Waits until a job may start, or until `stopping`.
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
