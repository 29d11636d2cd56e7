#include "server/scheduling/run_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

namespace colcast::scheduling {
namespace {

TEST(MemoryEstimateTest, BeforeTheFirstRunMuchIsExpected) {
  EXPECT_EQ(MemoryEstimate().Of(1000), 1000 * MemoryEstimate::kFirstBytesPerByte);
}

constexpr int64_t kMiB = 1 << 20;

void ObserveTwice(MemoryEstimate* memory, int64_t input_bytes, int64_t bytes) {
  for (int i = 0; i < 2; ++i) memory->Observe(input_bytes, bytes);
}

// A model's memory per run: a constant plus an amount per row, which has 600 input bytes.
int64_t TakenBy(int64_t rows) { return 200'000 + 6000 * rows; }
constexpr int64_t kRowBytes = 600;

MemoryEstimate* Learnt(MemoryEstimate* memory) {
  for (const int64_t rows : {1, 20, 100, 500, 5000}) {
    ObserveTwice(memory, kRowBytes * rows, TakenBy(rows));
  }
  return memory;
}

TEST(MemoryEstimateTest, OneRunSaysNothing) {
  MemoryEstimate memory;
  memory.Observe(1000, 5'000'000);
  EXPECT_EQ(memory.Of(1000), 1000 * MemoryEstimate::kFirstBytesPerByte);
  memory.Observe(1000, 4'000'000);
  EXPECT_EQ(memory.Of(1000), 4'000'000);
}

TEST(MemoryEstimateTest, OneSizeAloneIsTakenToCostByTheByte) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 1000, 5'000'000);
  EXPECT_EQ(memory.Of(1000), 5'000'000);
  EXPECT_NEAR(static_cast<double>(memory.Of(100'000)), 5e8, 1e7);
}

TEST(MemoryEstimateTest, WhatIsTooLittleToBeMeasuredSaysNothingAboutMore) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 100, 64 << 10);
  EXPECT_LT(memory.Of(3 * kMiB), 64 * kMiB);
}

TEST(MemoryEstimateTest, SmallRunsTeachWhatAHugeOneWouldTake) {
  MemoryEstimate memory;
  for (const int64_t rows : {20, 100, 1000})
    ObserveTwice(&memory, 64 * rows, 100'000 + 3000 * rows);
  EXPECT_NEAR(static_cast<double>(memory.Of(64 << 20)), 3000.0 * (1 << 20), 1e8);
}

TEST(MemoryEstimateTest, SmallRunsDoNotTeachThatAHugeOneIsCheap) {
  MemoryEstimate memory;
  for (const int64_t rows : {20, 100, 1000}) ObserveTwice(&memory, 640 * rows, 1'000'000 + rows);
  EXPECT_LT(memory.Of(640 * 16'000), 16 * kMiB) << "near enough to those that ran";
  EXPECT_GT(memory.Of(512 * kMiB), 7 * 1024 * kMiB);
}

TEST(MemoryEstimateTest, TheMostCountsNotTheMean) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 100, 1000);
  for (int i = 0; i < 20; ++i) memory.Observe(10'000, i < 2 ? 100'000 : 2000);
  EXPECT_GT(memory.Of(10'000), 80'000);
  for (int i = 0; i < 1000; ++i) memory.Observe(10'000, 2000);
  EXPECT_LT(memory.Of(10'000), 3000);
}

TEST(MemoryEstimateTest, OneOutlierMovesNothing) {
  for (const int64_t rows : {1, 20, 100, 500, 5000}) {
    MemoryEstimate memory;
    Learnt(&memory)->Observe(kRowBytes * rows, int64_t{1} << 40);
    for (const int64_t other : {1, 20, 100, 500, 5000, 50'000}) {
      EXPECT_EQ(memory.Of(kRowBytes * other), TakenBy(other)) << rows << ' ' << other;
    }
  }
}

TEST(MemoryEstimateTest, AnOutlierOfASizeThatNoRunHadMovesNothing) {
  MemoryEstimate memory;
  for (const int64_t input : {60, 2 * 600, 40 * 600, 100'000 * 600}) {
    Learnt(&memory)->Observe(input, int64_t{1} << 40);
    EXPECT_EQ(memory.Of(kRowBytes * 5243), TakenBy(5243)) << input;  // 3 MiB
  }
}

// Some small runs create callables, a one-time cost of megabytes; larger runs do not cost more.
TEST(MemoryEstimateTest, OutliersAmongSmallRunsAreNotMultipliedByTheRowsOfLargeOnes) {
  MemoryEstimate memory;
  Learnt(&memory);
  for (int i = 0; i < 3000; ++i) {
    const int64_t rows = std::array{1, 2, 20, 100, 500}[i % 5];
    const bool outlier = i % 97 < 3;  // some outliers are consecutive
    memory.Observe(kRowBytes * rows, outlier ? 5'000'000 : TakenBy(rows));
    ASSERT_LT(memory.Of(3 * kMiB), 3 * TakenBy(3 * kMiB / kRowBytes));
    ASSERT_GE(memory.Of(3 * kMiB), TakenBy(3 * kMiB / kRowBytes) * 9 / 10);
  }
}

TEST(MemoryEstimateTest, WhatTwoRunsTookCountsAsAFewTimesWhatWasExpected) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 1000, 100'000);
  ObserveTwice(&memory, 1000, int64_t{1} << 40);
  EXPECT_EQ(memory.Of(1000), 400'000);
  for (int i = 0; i < 10; ++i) ObserveTwice(&memory, 1000, 3'000'000);
  EXPECT_EQ(memory.Of(1000), 3'000'000);
}

TEST(MemoryEstimateTest, AnyNumberOfBytesHasAnEstimate) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 1, 1 << 20);
  EXPECT_GT(memory.Of(std::numeric_limits<int64_t>::max()), int64_t{1} << 50);
  EXPECT_EQ(memory.Of(0), 1 << 20);
}

using Answer = RunMemory::Answer;

TEST(RunMemoryTest, RunsInFlightShareIt) {
  RunMemory memory({/*max_bytes=*/100});
  {
    RunMemory::Share first, second, third;
    EXPECT_EQ(memory.Reserve(60, &first), Answer::kYes);
    EXPECT_EQ(memory.Reserve(41, &second), Answer::kLater);
    EXPECT_FALSE(memory.MayRun(41));
    EXPECT_EQ(memory.Reserve(40, &third), Answer::kYes);
  }
  EXPECT_TRUE(memory.MayRun(100));
  RunMemory::Share again;
  EXPECT_EQ(memory.Reserve(100, &again), Answer::kYes);
}

TEST(RunMemoryTest, WhatNeverFitsNeedNotWait) {
  RunMemory memory({/*max_bytes=*/100});
  RunMemory::Share share;
  EXPECT_EQ(memory.Reserve(101, &share), Answer::kNever);
  EXPECT_TRUE(memory.MayRun(101));  // refused without waiting
}

TEST(RunMemoryTest, WhatTakesMuchMustBeThereBesideWhatOthersMayStillTake) {
  constexpr int64_t kMiB = 1 << 20;
  RunMemory memory({/*max_bytes=*/1000 * kMiB, [] { return 300 * kMiB; }});
  RunMemory::Share first, second, small;
  EXPECT_EQ(memory.Reserve(301 * kMiB, &first), Answer::kNever);
  EXPECT_EQ(memory.Reserve(200 * kMiB, &first), Answer::kYes);
  EXPECT_EQ(memory.Reserve(101 * kMiB, &second), Answer::kNever);
  EXPECT_EQ(memory.Reserve(kMiB, &small), Answer::kYes);
}

}  // namespace
}  // namespace colcast::scheduling
