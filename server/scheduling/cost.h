// Learns how much time and memory runs take, and decides the slices of large requests.
#ifndef COLCAST_SERVER_SCHEDULING_COST_H_
#define COLCAST_SERVER_SCHEDULING_COST_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <utility>

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
// slope. The fit minimizes relative errors, and points fade without new observations.
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
// model. The ratio is learned separately for joined runs of similar size (between two powers of
// two). Until there are observations, joining is assumed to pay.
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

// Estimates, from earlier runs, how much memory a run with a given number of input bytes takes.
//
// The estimate is an upper bound rather than a mean: the memory of the smallest runs plus a rate
// per additional byte. The rate is the steepest slope from the smallest runs to larger ones, but at
// most the largest runs' memory per byte; without larger runs, it equals that ratio. Input
// bytes beyond max(kFarBytes, kFar * the largest observed input) are charged at least
// kFirstBytesPerByte each: small runs say little about a request of a few bytes whose shape asks
// for a million times as many. Runs of similar size (between two powers of two) form one point, the
// second largest of about the last hundred runs, because the largest may include one-time work,
// such as creating a callable.
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
  // The fitted line consists of the memory at the smallest input and the memory per further byte.
  Point smallest_ ABSL_GUARDED_BY(mutex_);
  double largest_input_ ABSL_GUARDED_BY(mutex_) = 0;
  double slope_ ABSL_GUARDED_BY(mutex_) = 0;
};

// How requests of one class may be joined and split.
struct BatchLimits {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  bool join = true;         // whether requests may run together at all
  int64_t max_rows = 1000;  // limit for a run of several requests
  // If true, a joined run is also limited to the worker's fair share of the waiting requests and to
  // sizes for which joining pays (JoinedShare), and its estimated time to max_time or four times
  // its first request's own time, whichever is longer.
  bool share = true;
  std::chrono::nanoseconds max_time = std::chrono::milliseconds(2);
  // How long a request waits for others to fill a batch, even if a worker is idle.
  std::chrono::nanoseconds timeout{0};
  int64_t max_waiting_rows = kUnlimited;  // requests beyond it are dropped (kBatchQueueFull)
  int64_t max_request_rows = kUnlimited;  // requests with more are refused
  int64_t max_slice_rows = kUnlimited;    // requests with more run in slices of at most this size
};

// The requests for one signature of one servable: their limits and what was learned about them.
// Only the estimates change. All methods may be called from any thread.
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

 private:
  const BatchLimits limits_;
  CostEstimate cost_;
  MemoryEstimate memory_;
  std::atomic<bool> warm_{false};
  JoinedShare joined_;
};

// Tracks the runs' reservations of a resource, usually memory. May be called from any thread.
class RunBudget {
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
    friend class RunBudget;
    RunBudget* memory_ = nullptr;
    int64_t bytes_ = 0;
  };

  enum class Answer {
    kYes,
    kLater,  // when other runs have released memory
    kNever,  // not enough memory even without other runs
  };

  explicit RunBudget(Options options) : options_(std::move(options)) {}

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

// What limits the slices of a request or of its remaining rows.
struct SliceNeeds {
  int idle_workers = 0;  // number of idle workers that could also run slices
  // How long a short request may have to wait for a slice; Duration::max() without short requests.
  CostEstimate::Duration longest = CostEstimate::Duration::max();
  int64_t max_rows = INT64_MAX;  // limit for one slice
};

// Returns the number of rows per slice; the last slice may have fewer. Returns `rows` if splitting
// does not pay. Each slice repeats the fixed cost of a run, so its rows must take at least as long
// as that, and long enough to justify waking a worker. While the cost is unknown, slices have about
// kRowsToLearnFrom rows if that helps an idle worker or short requests; the caller asks again after
// the first slices have run.
inline constexpr int64_t kRowsToLearnFrom = 1000;
int64_t RowsPerSlice(int64_t rows, const CostEstimate::Line& cost, const SliceNeeds& needs);

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_COST_H_
