// How much memory a run takes for so many bytes of input, learnt from those that ran.
#ifndef COLCAST_SERVER_SCHEDULING_MEMORY_ESTIMATE_H_
#define COLCAST_SERVER_SCHEDULING_MEMORY_ESTIMATE_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <cstdint>
#include <mutex>

namespace colcast::scheduling {

// A bound rather than a mean: what the smallest runs take, and for each byte more the most that
// larger ones took, though no more than the largest take per byte; by the byte while there are
// none. Runs of about the same size (between two powers of two) count as one, the second largest of
// the last hundred or so: one alone may have taken what no other will (it made a callable, compiled
// a kernel), and it changes nothing. What two took counts as at most kMostTimes what was expected.
// Before two of about the same size, kFirstBytesPerByte holds, and by the byte no more than that
// where runs are too small to be measured.
//
// `input_bytes` are those of the tensors that go in, with one-row columns repeated: for one
// signature the sizes of all others are about in proportion to them.
//
// All methods may be called from any thread.
class MemoryEstimate {
 public:
  static constexpr double kFirstBytesPerByte = 16;
  static constexpr double kMostTimes = 4;

  // A run took `bytes` at once.
  void Observe(int64_t input_bytes, int64_t bytes);

  int64_t Of(int64_t input_bytes) const;

  // Implementation details follow.
 private:
  struct Point {
    double input = 0;
    double bytes = 0;  // 0: there is none
  };
  struct Runs {
    Point largest;
    Point second;
  };

  void Fit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  double At(double input_bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::mutex mutex_;
  std::array<Runs, 64> runs_ ABSL_GUARDED_BY(mutex_);
  // Of the line: at the smallest input, and for each byte more.
  Point smallest_ ABSL_GUARDED_BY(mutex_);
  double slope_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_MEMORY_ESTIMATE_H_
