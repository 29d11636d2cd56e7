#include "server/scheduling/memory_estimate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace colcast::scheduling {
namespace {

TEST(MemoryEstimateTest, BeforeTheFirstRunMuchIsExpected) {
  EXPECT_EQ(MemoryEstimate().Of(1000), 1000 * MemoryEstimate::kFirstBytesPerByte);
}

TEST(MemoryEstimateTest, OneSizeAloneIsTakenToCostByTheByte) {
  MemoryEstimate memory;
  memory.Observe(1000, 50'000);
  EXPECT_EQ(memory.Of(1000), 50'000);
  EXPECT_EQ(memory.Of(100'000), 5'000'000);
}

TEST(MemoryEstimateTest, SmallRunsTeachWhatAHugeOneWouldTake) {
  MemoryEstimate memory;
  for (const int64_t rows : {20, 100, 1000}) memory.Observe(64 * rows, 100'000 + 3000 * rows);
  EXPECT_NEAR(static_cast<double>(memory.Of(64 << 20)), 3000.0 * (1 << 20), 1e8);
}

TEST(MemoryEstimateTest, TheMostCountsNotTheMean) {
  MemoryEstimate memory;
  memory.Observe(100, 1000);
  for (int i = 0; i < 20; ++i) memory.Observe(10'000, i == 0 ? 100'000 : 2000);
  EXPECT_GT(memory.Of(10'000), 80'000);
  for (int i = 0; i < 1000; ++i) memory.Observe(10'000, 2000);
  EXPECT_LT(memory.Of(10'000), 3000);
}

TEST(MemoryEstimateTest, OneRequestSaysLittleAboutOthers) {
  MemoryEstimate memory;
  memory.Observe(1000, 10'000);
  memory.Observe(1000, int64_t{1} << 40);
  EXPECT_EQ(memory.Of(1000), 40'000);
}

TEST(MemoryEstimateTest, AnyNumberOfBytesHasAnEstimate) {
  MemoryEstimate memory;
  memory.Observe(1, 1 << 20);
  EXPECT_GT(memory.Of(std::numeric_limits<int64_t>::max()), int64_t{1} << 50);
  EXPECT_EQ(memory.Of(0), 1 << 20);
}

}  // namespace
}  // namespace colcast::scheduling
