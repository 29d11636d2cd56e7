// Estimates how long a request of N rows keeps a worker busy, learnt from earlier runs.
#ifndef COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_
#define COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace colcast::scheduling {

// Fits a line, fixed + per_row * N, through the observations. Where time depends on something other
// than rows, such as the bytes of texts, that quantity takes the place of rows. Requests of about
// the same size (between two powers of two) form one point, the moving average of their rows and
// times, so that thousands of small requests do not drown out the few large ones that determine the
// slope. Points are weighted by relative error, and fade when no new observation arrives.
//
// An observation far above the line (a newly compiled shape, a shortage of memory, huge lists) is
// capped at kMostTimes the line, so that a single request has little influence. One below the line
// counts fully: disturbances make a run longer, never shorter.
//
// All methods may be called from any thread.
class CostEstimate {
 public:
  using Duration = std::chrono::steady_clock::duration;

  static constexpr double kMostTimes = 4;

  struct Line {
    double fixed = 0;    // nanoseconds
    double per_row = 0;  // nanoseconds
  };

  // Records that a run of `rows` rows took `time`.
  void Observe(int64_t rows, Duration time);

  // Neither coefficient is negative; both are 0 before the first observation.
  Line line() const;

  // Zero before the first observation.
  Duration Of(int64_t rows) const;

 private:
  // The requests whose row counts have the same number of bits.
  struct Point {
    double weight = 0;
    double rows = 0;
    double time = 0;
  };

  Line Fit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double At(double rows) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return line_.fixed + line_.per_row * rows;
  }

  mutable std::mutex mutex_;
  std::array<Point, 64> points_ ABSL_GUARDED_BY(mutex_);
  int highest_ ABSL_GUARDED_BY(mutex_) = 0;  // no point above it has a weight
  Line line_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_
