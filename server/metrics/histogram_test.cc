#include "server/metrics/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace colcast::metrics {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using testing::ElementsAre;

// The count in published bucket `i`.
int64_t PublishedCount(const HistogramSnapshot& snapshot, size_t i) {
  const int parts = snapshot.buckets->parts;
  int64_t count = 0;
  for (int part = 0; part < parts; ++part) count += snapshot.counts[i * parts + part];
  return count;
}

TEST(BucketsTest, LatencyBoundsAreThoseOfTensorFlowServing) {
  const std::vector<double>& bounds = LatencyBuckets().published;
  ASSERT_EQ(bounds.size(), 33u);
  EXPECT_DOUBLE_EQ(bounds[0], 10);
  EXPECT_DOUBLE_EQ(bounds[1], 18);
  EXPECT_DOUBLE_EQ(bounds[2], 32.4);
  EXPECT_NEAR(bounds[32], 1.4748e9, 1e6);  // 25 minutes
}

TEST(BucketsTest, RowAndByteBoundsAreRound) {
  EXPECT_THAT(RowBuckets().published,
              ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384));
  EXPECT_THAT(ByteBuckets().published, ElementsAre(256, 1024, 4096, 16384, 65536, 262144, 1048576,
                                                   4194304, 16777216, 67108864));
}

TEST(BucketsTest, EveryPublishedBoundIsACountedOne) {
  for (const Buckets* buckets : {&LatencyBuckets(), &ByteBuckets(), &RowBuckets()}) {
    ASSERT_EQ(buckets->bounds.size(), buckets->published.size() * buckets->parts);
    EXPECT_TRUE(std::is_sorted(buckets->bounds.begin(), buckets->bounds.end()));
    for (size_t i = 0; i < buckets->published.size(); ++i) {
      EXPECT_EQ(buckets->bounds[(i + 1) * buckets->parts - 1],
                static_cast<int64_t>(buckets->published[i] * buckets->unit));
    }
  }
}

TEST(HistogramTest, ABoundBelongsToItsBucket) {
  Histogram histogram(LatencyBuckets());
  histogram.Observe(microseconds(18));
  histogram.Observe(microseconds(18) + nanoseconds(1));
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(PublishedCount(snapshot, 0), 0);
  EXPECT_EQ(PublishedCount(snapshot, 1), 1);
  EXPECT_EQ(PublishedCount(snapshot, 2), 1);
}

TEST(HistogramTest, WhatIsOverTheLastBoundIsCounted) {
  Histogram histogram(RowBuckets());
  histogram.Observe(16384);
  histogram.Observe(16385);
  histogram.Observe(int64_t{1} << 50);
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.counts.back(), 2);
  EXPECT_EQ(snapshot.Count(), 3);
  EXPECT_EQ(snapshot.sum, 16384 + 16385 + (int64_t{1} << 50));
}

TEST(HistogramTest, NoObservationOfAnyThreadIsLost) {
  Histogram histogram(RowBuckets());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&histogram] {
      for (int i = 0; i < 10'000; ++i) histogram.Observe(i % 100);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Snapshot().Count(), 40'000);
  EXPECT_EQ(histogram.Snapshot().sum, 400 * 4950);
}

TEST(HistogramSnapshotTest, QuantilesLieWithinAPartOfABucket) {
  Histogram histogram(LatencyBuckets());
  for (int i = 1; i <= 1000; ++i) histogram.Observe(microseconds(i));
  const HistogramSnapshot snapshot = histogram.Snapshot();
  // An internal bucket ends at 1.8^(1/4) = 1.16 times its start.
  EXPECT_NEAR(snapshot.Quantile(0.5), 500, 10);
  EXPECT_NEAR(snapshot.Quantile(0.95), 950, 0.16 * 950);
  EXPECT_NEAR(snapshot.Quantile(0.99), 990, 0.16 * 990);
}

TEST(HistogramSnapshotTest, QuantilesOfNothingAndOfTooMuchAreFinite) {
  Histogram histogram(RowBuckets());
  EXPECT_EQ(histogram.Snapshot().Quantile(0.99), 0);
  histogram.Observe(20'000);
  EXPECT_EQ(histogram.Snapshot().Quantile(0.99), 16384);
}

TEST(HistogramSnapshotTest, AddsAndSubtracts) {
  Histogram histogram(RowBuckets());
  histogram.Observe(3);
  const HistogramSnapshot earlier = histogram.Snapshot();
  histogram.Observe(100);
  HistogramSnapshot difference = histogram.Snapshot();
  difference.Subtract(earlier);
  EXPECT_EQ(difference.Count(), 1);
  EXPECT_EQ(difference.sum, 100);
  HistogramSnapshot sum;
  sum.Add(earlier);
  sum.Add(difference);
  EXPECT_EQ(sum.counts, histogram.Snapshot().counts);
  EXPECT_EQ(sum.sum, 103);
}

}  // namespace
}  // namespace colcast::metrics
