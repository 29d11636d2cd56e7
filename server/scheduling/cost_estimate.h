// How long a request of N rows keeps a worker busy, learnt from those that ran.
#ifndef COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_
#define COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace colcast::scheduling {

// A line, fixed + per_row * N, through what was observed. Where the time follows something else
// than rows, such as the bytes of texts, that is what is counted as rows. Requests of about the
// same size (between two powers of two) count as one point of it, the moving average of their rows
// and times, so that thousands of small requests do not drown out what few large ones say about the
// slope. Points count by their relative error; those that nothing is observed of any more fade.
//
// One observation that is far above the line (a new shape compiled, memory was short, lists were
// huge) counts as kMostTimes the line, so that one request says little about others; one below
// counts as it is: what got in the way makes a run longer, never shorter.
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

  // A run of `rows` rows took `time`.
  void Observe(int64_t rows, Duration time);

  // Neither part is negative; both are 0 before the first observation.
  Line line() const;

  // Zero if nothing is known yet.
  Duration Of(int64_t rows) const;

  // Implementation details follow.
 private:
  // Requests whose rows have the same number of bits.
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
