// The estimated memory that all runs in flight share.
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

// Estimates how much memory a run takes for a number of input bytes, learnt from earlier runs.
//
// An upper bound rather than a mean: the memory of the smallest runs, plus a rate for each further
// byte. The rate is the steepest slope from the smallest runs to larger ones, but at most the
// largest runs' memory per byte; without larger runs, it is that ratio itself. Runs of about the
// same size (between two powers of two) form one point: the second largest of about the last
// hundred, since the largest alone may include one-time work (creating a callable, compiling a
// kernel). An observation is capped at kMostTimes the expectation. Until a size has run twice,
// kFirstBytesPerByte is assumed; it is also the maximum rate while runs are too small to be
// measured.
//
// `input_bytes` counts the input tensors, with one-row columns repeated: for one signature all
// other tensors are about proportional to them.
//
// All methods may be called from any thread.
class MemoryEstimate {
 public:
  static constexpr double kFirstBytesPerByte = 16;
  static constexpr double kMostTimes = 4;

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
  // The line: memory at the smallest input, and for each further byte.
  Point smallest_ ABSL_GUARDED_BY(mutex_);
  double slope_ ABSL_GUARDED_BY(mutex_) = 0;
};

// All methods may be called from any thread.
class RunMemory {
 public:
  struct Options {
    int64_t max_bytes = std::numeric_limits<int64_t>::max();
    // The memory that the process can still use; asked only for large runs.
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
    kLater,  // once other runs have released memory
    kNever,  // even without other runs there is not enough
  };

  explicit RunMemory(Options options) : options_(std::move(options)) {}

  Answer Reserve(int64_t bytes, Share* share);
  // Whether Reserve() would answer something other than kLater.
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
