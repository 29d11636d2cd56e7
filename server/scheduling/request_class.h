// The class of requests for one signature of one servable: its batching limits and what it has
// learned about costs.
#ifndef COLCAST_SERVER_SCHEDULING_REQUEST_CLASS_H_
#define COLCAST_SERVER_SCHEDULING_REQUEST_CLASS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "server/scheduling/cost_estimate.h"
#include "server/scheduling/run_memory.h"

namespace colcast::scheduling {

struct BatchLimits {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  bool join = true;         // whether requests may run together at all
  int64_t max_rows = 1000;  // limit for a run of several requests
  // If true, a joined run has three more limits: the worker's fair share of the waiting requests;
  // an estimated time of max_time or four times the first request's time, whichever is longer; and
  // only sizes for which measurements show that joining pays.
  bool share = true;
  std::chrono::nanoseconds max_time = std::chrono::milliseconds(2);
  // How long a request waits for others to fill a batch, even if a worker is idle.
  std::chrono::nanoseconds timeout{0};
  int64_t max_waiting_rows = kUnlimited;  // requests beyond it are dropped: kBatchQueueFull
  int64_t max_request_rows = kUnlimited;  // requests with more are refused
  int64_t max_slice_rows = kUnlimited;    // requests with more run in slices of at most this size
};

// Only the learned estimates change. All methods may be called from any thread.
class RequestClass {
 public:
  explicit RequestClass(const BatchLimits& limits) : limits_(limits) {}

  const BatchLimits& limits() const { return limits_; }
  CostEstimate& cost() { return cost_; }
  MemoryEstimate& memory() { return memory_; }

  // False until a run has ended. Runs that began earlier are not representative, because first runs
  // allocate, compile and read files.
  bool warm() const { return warm_.load(std::memory_order_relaxed); }
  void NoteRun() { warm_.store(true, std::memory_order_relaxed); }

  JoinedShare& joined() { return joined_; }

 private:
  const BatchLimits limits_;
  CostEstimate cost_;
  MemoryEstimate memory_;
  std::atomic<bool> warm_{false};
  JoinedShare joined_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_REQUEST_CLASS_H_
