#include "server/callers/token_bucket.h"

#include <gtest/gtest.h>

#include <chrono>

namespace colcast::callers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TokenBucket::Time kStart{};

TEST(TokenBucketTest, IsFullAtFirstAndGivesNoMore) {
  TokenBucket bucket(10, 5, kStart);
  EXPECT_TRUE(bucket.IsFull(kStart));
  EXPECT_TRUE(bucket.Take(3, kStart));
  EXPECT_FALSE(bucket.Take(3, kStart));
  EXPECT_TRUE(bucket.Take(2, kStart));  // the refused ones took nothing
  EXPECT_EQ(bucket.At(kStart), 0);
}

TEST(TokenBucketTest, FillsAtItsRateUpToTheLimit) {
  TokenBucket bucket(10, 5, kStart);
  ASSERT_TRUE(bucket.Take(5, kStart));
  EXPECT_DOUBLE_EQ(bucket.At(kStart + milliseconds(200)), 2);
  EXPECT_FALSE(bucket.IsFull(kStart + milliseconds(499)));
  EXPECT_TRUE(bucket.IsFull(kStart + milliseconds(501)));
  EXPECT_DOUBLE_EQ(bucket.At(kStart + seconds(3600)), 5);
}

TEST(TokenBucketTest, SaysWhenThereWillBeEnough) {
  TokenBucket bucket(10, 5, kStart);
  ASSERT_TRUE(bucket.Take(4, kStart));
  EXPECT_EQ(bucket.TimeUntil(1, kStart).count(), 0);
  EXPECT_DOUBLE_EQ(bucket.TimeUntil(3, kStart).count(), 0.2);
  EXPECT_DOUBLE_EQ(bucket.TimeUntil(3, kStart + milliseconds(50)).count(), 0.15);
}

TEST(TokenBucketTest, KeepsWhatItHasWhenTheRateChanges) {
  TokenBucket bucket(10, 100, kStart);
  ASSERT_TRUE(bucket.Take(90, kStart));
  const auto later = kStart + seconds(1);
  bucket.SetRate(1, 50, later);
  EXPECT_DOUBLE_EQ(bucket.At(later), 20);
  EXPECT_DOUBLE_EQ(bucket.At(later + seconds(2)), 22);
  bucket.SetRate(1, 5, later);
  EXPECT_DOUBLE_EQ(bucket.At(later), 5);
}

}  // namespace
}  // namespace colcast::callers
