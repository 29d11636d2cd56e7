// Counts of observations by size, cheap enough for every request: two relaxed additions.
#ifndef COLCAST_SERVER_METRICS_HISTOGRAM_H_
#define COLCAST_SERVER_METRICS_HISTOGRAM_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace colcast::metrics {

// The upper bounds of a histogram's buckets, inclusive and rising; one bucket more is unbounded.
// Observations are whole numbers; `unit` of them make one of the published unit.
struct Buckets {
  // Bucket i holds values over published[i - 1] and at most published[i].
  std::vector<double> published;
  int64_t unit = 1;
  // Each published bucket is kept as so many, so that quantiles are finer.
  int parts = 1;
  // The published.size() * parts bounds that observations are compared with.
  std::vector<int64_t> bounds;
};

// Published in microseconds, observed in nanoseconds. The bounds are those of TensorFlow Serving's
// latency metrics: 33 from 10 microseconds to 25 minutes, each 1.8 times the one before.
const Buckets& LatencyBuckets();
// 256 bytes to 64 MiB, each 4 times the one before.
const Buckets& ByteBuckets();
// Differences of scores, observed in billionths: 0, and 1e-8 to 10, each 10 times the one before.
const Buckets& DifferenceBuckets();
// 1 to 16384, each twice the one before: those of TensorFlow Serving's example counts.
const Buckets& RowBuckets();

// A histogram as it was at one moment. An empty one has no buckets and can be added to.
struct HistogramSnapshot {
  const Buckets* buckets = nullptr;
  std::vector<int64_t> counts;  // buckets->bounds.size() + 1 of them, not cumulative
  int64_t sum = 0;              // of what was observed

  int64_t Count() const;
  // The value below which `share` (0 to 1) of the observations lie, in the published unit, by
  // linear interpolation within a bucket; the highest bound for what is over it; 0 without any.
  double Quantile(double share) const;
  // Both need snapshots of the same buckets, or empty ones.
  void Add(const HistogramSnapshot& other);
  void Subtract(const HistogramSnapshot& earlier);
};

// All methods may be called from any thread.
class Histogram {
 public:
  // `buckets` must outlive the histogram.
  explicit Histogram(const Buckets& buckets);

  void Observe(int64_t value);
  void Observe(std::chrono::nanoseconds time) { Observe(time.count()); }
  // A concurrent observation may be in the counts, in the sum, in both or in neither.
  HistogramSnapshot Snapshot() const;

 private:
  const Buckets& buckets_;
  const std::unique_ptr<std::atomic<int64_t>[]> counts_;
  std::atomic<int64_t> sum_{0};
};

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_HISTOGRAM_H_
