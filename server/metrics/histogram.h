// The buckets of histograms, and copies of histograms for publication.
#ifndef COLCAST_SERVER_METRICS_HISTOGRAM_H_
#define COLCAST_SERVER_METRICS_HISTOGRAM_H_

#include <cstdint>
#include <vector>

namespace colcast::metrics {

// The inclusive upper bounds of a histogram's buckets, ascending, with one unbounded bucket after
// them. Values are observed as integers and divided by `unit` to publish them.
struct Buckets {
  // Bucket i contains values above published[i - 1] and up to published[i].
  std::vector<double> published;
  int64_t unit = 1;
  std::vector<int64_t> bounds;  // `published`, in observed units
};

// TensorFlow Serving's bounds for latencies: 33 bounds, from 10 microseconds to 25 minutes, each
// 1.8 times the previous one. Observed in nanoseconds, published in microseconds.
const Buckets& LatencyBuckets();
// 256 bytes to 64 MiB, in factors of 4.
const Buckets& ByteBuckets();
// TensorFlow Serving's bounds for example counts: 1 to 16384, in factors of 2.
const Buckets& RowBuckets();

// A copy of a histogram. An empty snapshot has no buckets; any snapshot can be added to it.
struct HistogramSnapshot {
  const Buckets* buckets = nullptr;
  std::vector<int64_t> counts;  // buckets->bounds.size() + 1 counts, not cumulative
  int64_t sum = 0;              // sum of the observations

  int64_t Count() const;
  // REQUIRES a snapshot with the same buckets, or an empty one.
  void Add(const HistogramSnapshot& other);
};

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_HISTOGRAM_H_
