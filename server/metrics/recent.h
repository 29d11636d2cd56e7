// The requests of the last minute: differences of the counts since the start.
#ifndef COLCAST_SERVER_METRICS_RECENT_H_
#define COLCAST_SERVER_METRICS_RECENT_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "server/base/stop_flag.h"
#include "server/metrics/metrics.h"

namespace colcast::metrics {

// The part of a RequestSeries that is kept.
struct RecentSeries {
  RequestLabels labels;
  int64_t answered = 0;  // with whatever status
  int64_t failed = 0;    // with another one than OK
  int64_t rows = 0;
  int64_t bytes_saved = 0;
  HistogramSnapshot latency;  // of those answered OK
};

// All methods may be called from any thread.
class Recent {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kWindow{60};

  struct Interval {
    double seconds = 0;
    double cpu_seconds = 0;              // used by the process
    std::vector<RecentSeries> requests;  // sorted as Metrics::Requests()
  };

  // Takes the counts until `now`, about once a second; `now` rises from call to call.
  void Add(Time now, const std::vector<RequestSeries>& requests, double cpu_seconds);

  // The counts of the last `span`, at most kWindow; of less time if there is less, and none before
  // the second call of Add.
  Interval Last(std::chrono::seconds span) const;

  // Requests a second between two calls of Add, the oldest first.
  std::vector<double> Rates() const;

 private:
  struct Sample {
    Time time;
    double cpu_seconds;
    std::vector<RecentSeries> requests;
  };

  mutable std::mutex mutex_;
  std::deque<Sample> samples_ ABSL_GUARDED_BY(mutex_);
};

// Adds the counts once a second, on a thread of its own.
class Sampler {
 public:
  // Starts a thread. `metrics` must outlive the sampler.
  explicit Sampler(const Metrics* metrics);
  ~Sampler();

  const Recent& recent() const { return recent_; }

 private:
  void Run();

  const Metrics* const metrics_;
  Recent recent_;
  StopFlag stop_;
  std::thread thread_;
};

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_RECENT_H_
