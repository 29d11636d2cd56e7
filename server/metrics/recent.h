// The requests of the last minute, computed as differences of total counts.
#ifndef COLCAST_SERVER_METRICS_RECENT_H_
#define COLCAST_SERVER_METRICS_RECENT_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "server/base/thread.h"
#include "server/metrics/metrics.h"

namespace colcast::metrics {

// The fields of RequestSeries that Recent keeps.
struct RecentSeries {
  RequestLabels labels;
  int64_t answered = 0;  // number answered with any status
  int64_t failed = 0;    // number answered with a status other than OK
  int64_t rows = 0;
  int64_t bytes_saved = 0;
  HistogramSnapshot latency;  // latency of requests answered OK
};

// All methods may be called from any thread.
class Recent {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kWindow{60};

  struct Interval {
    double seconds = 0;
    double cpu_seconds = 0;              // used by the process
    std::vector<RecentSeries> requests;  // sorted like Metrics::Requests()
  };

  // Stores the total counts at `now`. Call about once a second, with increasing `now`.
  void Add(Time now, const std::vector<RequestSeries>& requests, double cpu_seconds);

  // The counts of the last `span`, which is at most kWindow, or since the first call of Add() if
  // that is less. Empty before the second call.
  Interval Last(std::chrono::seconds span) const;

  // Requests per second between consecutive calls of Add(), oldest first.
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

// Calls Recent::Add() once a second, on a separate thread.
class Sampler {
 public:
  // `metrics` must outlive the sampler.
  explicit Sampler(const Metrics* metrics);
  ~Sampler();

  const Recent& recent() const { return recent_; }

 private:
  void Run();

  const Metrics* const metrics_;
  Recent recent_;
  StopFlag stop_;
  Thread thread_;
};

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_RECENT_H_
