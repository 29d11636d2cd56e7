// Limits and estimates the memory of runs.
#ifndef COLCAST_SERVER_SCHEDULING_RUN_MEMORY_H_
#define COLCAST_SERVER_SCHEDULING_RUN_MEMORY_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>

namespace colcast::scheduling {

// Estimates, from earlier runs, how much memory a run with a given number of input bytes takes.
//
// The estimate is an upper bound rather than a mean: the memory of the smallest runs plus a rate
// per additional byte. The rate is the steepest slope from the smallest runs to larger ones, but at
// most the largest runs' memory per byte; without larger runs, it equals that ratio. Bytes beyond
// kFarBytes, and kFar times the largest runs', count at least kFirstBytesPerByte: small runs say
// little about a request of a few bytes whose shape asks for a million times as many. Runs of
// similar size (between two powers of two) form one point: the second largest of about the last
// hundred, because the largest may include one-time work (creating a callable, compiling a kernel).
// An observation is capped at kMostTimes the estimate. Until some size has run twice, runs are
// assumed to take kFirstBytesPerByte per input byte, which is also the maximum rate while runs are
// too small to be measured.
//
// `input_bytes` counts the input tensors, with one-row columns repeated, because the size of a
// signature's other tensors is roughly proportional to them.
//
// All methods may be called from any thread.
class MemoryEstimate {
 public:
  static constexpr double kFirstBytesPerByte = 16;
  static constexpr double kMostTimes = 4;
  static constexpr double kFar = 16;
  static constexpr double kFarBytes = 64 << 20;

  // Records that a run's peak was `bytes`.
  void Observe(int64_t input_bytes, int64_t bytes);

  int64_t Of(int64_t input_bytes) const;

 private:
  struct Point {
    double input = 0;
    double bytes = 0;  // 0 if the point is empty
  };
  struct Runs {
    Point largest;
    Point second;
  };

  void Fit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double At(double input_bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::mutex mutex_;
  std::array<Runs, 64> runs_ ABSL_GUARDED_BY(mutex_);
  // The line: memory at the smallest input, and memory per additional byte.
  Point smallest_ ABSL_GUARDED_BY(mutex_);
  double largest_input_ ABSL_GUARDED_BY(mutex_) = 0;
  double slope_ ABSL_GUARDED_BY(mutex_) = 0;
};

// All methods may be called from any thread.
class RunMemory {
 public:
  struct Options {
    int64_t max_bytes = std::numeric_limits<int64_t>::max();
    // Returns the memory that the process can still use. Called only for large runs.
    std::function<int64_t()> available = [] { return std::numeric_limits<int64_t>::max(); };
  };

  // A run's reservation, released by the destructor.
  class Share {
   public:
    Share() = default;
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    friend class RunMemory;
    RunMemory* memory_ = nullptr;
    int64_t bytes_ = 0;
  };

  enum class Answer {
    kYes,
    kLater,  // when other runs have released memory
    kNever,  // not enough memory even without other runs
  };

  explicit RunMemory(Options options) : options_(std::move(options)) {}

  Answer Reserve(int64_t bytes, Share* share);
  // Whether Reserve() would return something other than kLater.
  bool MayRun(int64_t bytes) const {
    return bytes > max_bytes() || bytes <= max_bytes() - taken_.load(std::memory_order_relaxed);
  }

  int64_t max_bytes() const { return options_.max_bytes; }

 private:
  const Options options_;
  std::atomic<int64_t> taken_{0};
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_RUN_MEMORY_H_
