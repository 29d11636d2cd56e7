#include "server/metrics/histogram.h"

#include <cmath>
#include <numeric>

namespace colcast::metrics {
namespace {

Buckets Exponential(double first, double growth, int count, int64_t unit) {
  Buckets buckets;
  buckets.unit = unit;
  double bound = first;
  for (int i = 0; i < count; ++i, bound *= growth) {
    buckets.published.push_back(bound);
    buckets.bounds.push_back(static_cast<int64_t>(std::floor(bound * unit)));
  }
  return buckets;
}

}  // namespace

const Buckets& LatencyBuckets() {
  static const Buckets* const buckets = new Buckets(Exponential(10, 1.8, 33, 1000));
  return *buckets;
}

const Buckets& ByteBuckets() {
  static const Buckets* const buckets = new Buckets(Exponential(256, 4, 10, 1));
  return *buckets;
}

const Buckets& RowBuckets() {
  static const Buckets* const buckets = new Buckets(Exponential(1, 2, 15, 1));
  return *buckets;
}

int64_t HistogramSnapshot::Count() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void HistogramSnapshot::Add(const HistogramSnapshot& other) {
  if (other.buckets == nullptr) return;
  if (buckets == nullptr) {
    *this = other;
    return;
  }
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  sum += other.sum;
}

}  // namespace colcast::metrics
