// Estimates how much memory a run takes for a number of input bytes, learnt from earlier runs.
#ifndef COLCAST_SERVER_SCHEDULING_MEMORY_ESTIMATE_H_
#define COLCAST_SERVER_SCHEDULING_MEMORY_ESTIMATE_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <cstdint>
#include <mutex>

namespace colcast::scheduling {

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

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_MEMORY_ESTIMATE_H_
