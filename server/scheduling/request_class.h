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

  // The size that determines a request's cost: its rows or, if these have far more bytes than usual
  // (a list whose shape asks for a million values), as many usual rows as have its bytes.
  int64_t SizeOf(int64_t rows, int64_t input_bytes) const {
    const double usual = row_bytes_.load(std::memory_order_relaxed);
    const auto bytes = static_cast<double>(input_bytes);
    const bool is_usual = usual == 0 || bytes <= kUnusual * usual * static_cast<double>(rows);
    return is_usual ? rows : static_cast<int64_t>(bytes / usual);
  }
  // Call after a run of this size.
  void NoteBytes(int64_t rows, int64_t input_bytes) {
    if (rows < 1) return;
    constexpr double kWeight = 0.05;
    const double bytes = static_cast<double>(input_bytes) / static_cast<double>(rows);
    const double usual = row_bytes_.load(std::memory_order_relaxed);
    row_bytes_.store(usual == 0 ? bytes : usual + kWeight * (bytes - usual),
                     std::memory_order_relaxed);
  }

 private:
  static constexpr double kUnusual = 64;

  const BatchLimits limits_;
  CostEstimate cost_;
  MemoryEstimate memory_;
  std::atomic<bool> warm_{false};
  std::atomic<double> row_bytes_{0};
  JoinedShare joined_;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_REQUEST_CLASS_H_
