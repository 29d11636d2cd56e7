// Learns what requests cost, alone and together.
#ifndef COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_
#define COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace colcast::scheduling {

// floor(log2(number)); 0 for 1 and less.
inline int BitsOf(int64_t number) {
  int bits = 0;
  for (; number > 1; number >>= 1) ++bits;
  return bits;
}

// Estimates how long a request of N rows keeps a worker busy, learnt from earlier runs.
//
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

// Learns whether requests take less time together than one after the other.
//
// Joining saves the fixed cost of a run, and loses time once the tensors of many rows no longer fit
// the processor's caches. So it pays for small requests, up to a number of rows that depends on the
// model. It is learnt separately for each size of the joined run, between two powers of two;
// without observations, joining counts as paying.
//
// All methods may be called from any thread. Of two simultaneous observations one may be lost.
class JoinedShare {
 public:
  JoinedShare();

  // Records that requests of `rows` rows in total ran together in `together`, and would have taken
  // `alone` one after the other.
  void Observe(int64_t rows, CostEstimate::Duration alone, CostEstimate::Duration together);

  // Whether joining pays for a run of `rows` rows. Each refusal weakens a bad estimate slightly, so
  // that joining is tried again after a few hundred refusals: loads change.
  bool Pays(int64_t rows);

  // The ratio of the time together to the time one after the other; at most 1.
  double Of(int64_t rows) const;

  // True on every 16th call, whose request should run alone even if others wait, as the baseline
  // for joined runs.
  bool WantsOneAlone();

 private:
  using Share = std::atomic<double>;

  std::array<Share, 64> shares_;  // indexed by BitsOf(rows)
  std::atomic<int> runs_{0};
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_
