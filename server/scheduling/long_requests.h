// The threads beside the workers that run long requests, what waits for them, and when it starts.
//
// With `nice` there are as many as workers, of a lower priority, for long requests while short ones
// come: a short one finds an idle worker, which the kernel lets interrupt them at once. A long
// request starts there when fewer than num_workers requests and slices run, or when it has waited
// for RequestQueue::kAgeing times what it takes or for RequestQueue::kLongestHandicap. A pool of
// one worker has one such thread in any case, of the same priority unless `nice` says otherwise,
// for runs that would hold its worker for long.
#ifndef COLCAST_SERVER_SCHEDULING_LONG_REQUESTS_H_
#define COLCAST_SERVER_SCHEDULING_LONG_REQUESTS_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "server/scheduling/idle_workers.h"
#include "server/scheduling/job.h"
#include "server/scheduling/request_queue.h"

namespace colcast::scheduling {

class LongRequests {
 public:
  struct Options {
    int num_workers = 1;
    int max_queued_requests = 1;
    Clock::duration longest_slice;  // what takes longer is long
    int nice = 0;                   // nice(7); 0: none gives way
    std::function<Clock::time_point()> now;
  };

  explicit LongRequests(Options options);

  // Whether there are such threads, one for each worker.
  bool has_threads() const { return options_.nice > 0 || options_.num_workers == 1; }
  // Requests and slices that run there.
  int running() const { return running_.load(std::memory_order_relaxed); }

  // From any thread.
  void NoteShortRequest();
  // Whether one ran lately: within a second.
  bool ShortRequestsCome() const;
  // Whether what takes so long is to run there now.
  bool GivesWay(Clock::duration cost) const;
  // Whether what takes so long may hold the last worker.
  bool MayTakeLastWorker(Clock::duration time) const;

  // Makes the calling thread one of them.
  void BeginThread() const;
  // Whether the calling thread is one, of any pool.
  static bool ThisThreadGivesWay();
  // Whether it is of lower priority than workers are.
  static bool ThisThreadIsNice();

  // With the pool's lock held, as are all that follow.
  RequestQueue& queue() { return queue_; }
  const RequestQueue& queue() const { return queue_; }
  void WakeOne() { wakeup_.notify_one(); }
  void WakeAll() { wakeup_.notify_all(); }
  // To be called where a worker has become idle, and where there may be more to take.
  void WakeOneForWork();

  // Waits until something may start, or `stopping`.
  void Wait(std::unique_lock<std::mutex>* lock, const IdleWorkers& idle, const bool& stopping);
  // Takes what goes first, and counts it as running until End(). False if there is nothing.
  bool Take(Clock::time_point now, Taken* next);
  void End() { --running_; }

 private:
  bool ShortRequestsCome(Clock::duration within) const;
  Clock::time_point MayStartAt(Clock::time_point now, int idle_workers) const;

  const Options options_;
  RequestQueue queue_;
  std::condition_variable wakeup_;
  std::atomic<int> running_{0};
  std::atomic<Clock::rep> last_short_request_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_LONG_REQUESTS_H_
