#include "server/scheduling/run_memory.h"

#include <gtest/gtest.h>

namespace colcast::scheduling {
namespace {

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
  EXPECT_TRUE(memory.MayRun(101));  // to be told so
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
