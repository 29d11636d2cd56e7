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
    ASSERT_EQ(buckets->bounds.size(), buckets->published.size());
    EXPECT_TRUE(std::is_sorted(buckets->bounds.begin(), buckets->bounds.end()));
    for (size_t i = 0; i < buckets->published.size(); ++i) {
      EXPECT_EQ(buckets->bounds[i], static_cast<int64_t>(buckets->published[i] * buckets->unit));
    }
  }
}

TEST(HistogramTest, ABoundBelongsToItsBucket) {
  Histogram histogram(LatencyBuckets());
  histogram.Observe(microseconds(18));
  histogram.Observe(microseconds(18) + nanoseconds(1));
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.counts[0], 0);
  EXPECT_EQ(snapshot.counts[1], 1);
  EXPECT_EQ(snapshot.counts[2], 1);
}

TEST(HistogramTest, ValuesOverTheLastBoundAreCounted) {
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

TEST(HistogramSnapshotTest, AddsToAnEmptyOneAndToAnother) {
  Histogram histogram(RowBuckets());
  histogram.Observe(3);
  HistogramSnapshot sum;
  sum.Add(histogram.Snapshot());
  histogram.Observe(100);
  sum.Add(histogram.Snapshot());
  EXPECT_EQ(sum.Count(), 3);
  EXPECT_EQ(sum.sum, 106);
}

}  // namespace
}  // namespace colcast::metrics
