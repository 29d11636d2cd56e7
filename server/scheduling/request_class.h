// Requests for one signature of one servable: what they may do together, and what they cost.
#ifndef COLCAST_SERVER_SCHEDULING_REQUEST_CLASS_H_
#define COLCAST_SERVER_SCHEDULING_REQUEST_CLASS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "server/scheduling/cost_estimate.h"
#include "server/scheduling/joined_share.h"
#include "server/scheduling/memory_estimate.h"

namespace colcast::scheduling {

struct BatchLimits {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  bool join = true;         // whether requests may run together at all
  int64_t max_rows = 1000;  // of requests that run together
  // Whether a run takes no more requests than a free worker's part of what waits, and takes no
  // longer than this, as estimated, or than four times as long as the first of them alone; and
  // whether requests run apart where running together is measured not to pay.
  bool share = true;
  std::chrono::nanoseconds max_time = std::chrono::milliseconds(2);
  // How long a request waits for company that would fill a run, even if a worker is idle.
  std::chrono::nanoseconds timeout{0};
  int64_t max_waiting_rows = kUnlimited;  // one request more is dropped: kBatchQueueFull
  int64_t max_request_rows = kUnlimited;  // a request with more is refused
  int64_t max_slice_rows = kUnlimited;    // a request with more runs in slices of so many
};

// Immutable but for what it learns. All methods may be called from any thread.
class RequestClass {
 public:
  explicit RequestClass(const BatchLimits& limits) : limits_(limits) {}

  const BatchLimits& limits() const { return limits_; }
  CostEstimate& cost() { return cost_; }
  MemoryEstimate& memory() { return memory_; }

  // False until a run has ended. What began before is no measure of any other: first runs allocate,
  // compile and read files.
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
