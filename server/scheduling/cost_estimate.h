// Learns how long requests take, alone and joined.
#ifndef COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_
#define COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace colcast::scheduling {

// floor(log2(number)); 0 for numbers below 1.
inline int BitsOf(int64_t number) {
  int bits = 0;
  for (; number > 1; number >>= 1) ++bits;
  return bits;
}

// Estimates, from earlier runs, how long a request of N rows occupies a worker.
//
// Fits a line, fixed + per_row * N, to the observations. If the time depends on something other
// than rows, such as the bytes of texts, that quantity replaces the number of rows. Requests of
// similar size (between two powers of two) form one point, the moving averages of their rows and
// times, so that thousands of small requests do not outweigh the few large ones that determine the
// slope. Points are weighted by relative error, and fade without new observations.
//
// An observation far above the line (a newly compiled shape, a shortage of memory, huge lists) is
// capped at kMostTimes the line, to limit the influence of a single request. Observations below the
// line count fully, because disturbances only make runs longer.
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
  // Averages over the requests with the same BitsOf(rows).
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
  int highest_ ABSL_GUARDED_BY(mutex_) = 0;  // index of the last point in use
  Line line_ ABSL_GUARDED_BY(mutex_);
};

// Learns whether requests take less time together than one after the other.
//
// Joining saves the fixed cost of a run, but costs time once the tensors no longer fit the
// processor's caches. So it pays for small requests, up to a number of rows that depends on the
// model. The ratio is learned separately for each size of the joined run, between two powers of
// two. Until there are observations, joining is assumed to pay.
//
// All methods may be called from any thread. If two observations coincide, one may be lost.
class JoinedShare {
 public:
  JoinedShare();

  // Records that requests with `rows` rows in total took `together` in one run, and would have
  // taken `alone` one after the other.
  void Observe(int64_t rows, CostEstimate::Duration alone, CostEstimate::Duration together);

  // Whether joining pays for a run of `rows` rows. Loads change, so each refusal moves the ratio
  // slightly toward paying, and joining is tried again after a few hundred refusals.
  bool Pays(int64_t rows);

  // The ratio of the time together to the time one after the other; at most 1.
  double Of(int64_t rows) const;

  // True on every 16th call. That request should run alone even if others wait, as the baseline for
  // joined runs.
  bool WantsOneAlone();

 private:
  using Share = std::atomic<double>;

  std::array<Share, 64> shares_;  // indexed by BitsOf(rows)
  std::atomic<int> runs_{0};
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_COST_ESTIMATE_H_
