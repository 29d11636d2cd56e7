#include "server/scheduling/cost.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>

namespace colcast::scheduling {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// The estimate in microseconds.
double Of(const CostEstimate& cost, int64_t rows) {
  return std::chrono::duration<double, std::micro>(cost.Of(rows)).count();
}

TEST(CostEstimateTest, TheCostIsZeroBeforeTheFirstRun) {
  EXPECT_EQ(CostEstimate().Of(20), CostEstimate::Duration::zero());
}

TEST(CostEstimateTest, WithOneSizeTheCostIsProportionalToRows) {
  CostEstimate cost;
  for (int i = 0; i < 3; ++i) cost.Observe(20, microseconds(600));
  EXPECT_NEAR(Of(cost, 20), 600, 1);
  EXPECT_NEAR(Of(cost, 200), 6000, 10);
}

TEST(CostEstimateTest, AnyNumberOfRowsHasACost) {
  CostEstimate cost;
  cost.Observe(20, microseconds(600));
  EXPECT_EQ(cost.Of(INT64_MAX), std::chrono::hours(24));
}

TEST(CostEstimateTest, TwoSizesDetermineTheFixedCost) {
  CostEstimate cost;
  for (int i = 0; i < 20; ++i) {
    cost.Observe(20, microseconds(400 + 20 * 10));
    cost.Observe(1000, microseconds(400 + 1000 * 10));
  }
  EXPECT_NEAR(cost.line().fixed, 400e3, 20e3);
  EXPECT_NEAR(cost.line().per_row, 10e3, 0.2e3);
}

TEST(CostEstimateTest, SimilarSizesHardlyDetermineTheFixedCost) {
  CostEstimate cost;
  cost.Observe(500, milliseconds(9));
  for (int i = 0; i < 20; ++i) cost.Observe(1000, milliseconds(8));
  EXPECT_GE(cost.line().per_row * 1000, 3.5e6);
  EXPECT_NEAR(Of(cost, 1000), 8000, 1000);
}

TEST(CostEstimateTest, AFewLargeRequestsCountBesideManySmallOnes) {
  CostEstimate cost;
  for (int i = 0; i < 1000; ++i) {
    cost.Observe(18 + i % 6, microseconds(400 + (18 + i % 6) * 10));
    if (i % 200 == 0) cost.Observe(1000, microseconds(400 + 1000 * 10));
  }
  EXPECT_NEAR(Of(cost, 1000), 10'400, 300);
}

TEST(CostEstimateTest, TheEstimateFollowsChanges) {
  CostEstimate cost;
  for (int i = 0; i < 100; ++i) cost.Observe(20, microseconds(600));
  for (int i = 0; i < 50; ++i) cost.Observe(20, microseconds(200));
  EXPECT_NEAR(Of(cost, 20), 200, 10);
}

TEST(CostEstimateTest, OneSlowRequestChangesTheEstimateLittle) {
  CostEstimate cost;
  for (int i = 0; i < 10; ++i) cost.Observe(20, microseconds(600));
  cost.Observe(20, std::chrono::seconds(60));
  EXPECT_LT(Of(cost, 20), 2 * 600);
}

TEST(CostEstimateTest, SlowRequestsOfTwoRowsHardlyChangeTheEstimateForTwenty) {
  CostEstimate after;
  for (int i = 0; i < 10; ++i) {
    after.Observe(20, microseconds(500));
    after.Observe(1000, microseconds(4000));
  }
  for (int i = 0; i < 12; ++i) after.Observe(2, std::chrono::seconds(1));
  EXPECT_NEAR(Of(after, 20), 500, 250);
  EXPECT_NEAR(Of(after, 1000), 4000, 1000);

  CostEstimate before;
  for (int i = 0; i < 12; ++i) before.Observe(2, std::chrono::seconds(1));
  for (int i = 0; i < 3; ++i) before.Observe(20, microseconds(500));
  EXPECT_NEAR(Of(before, 20), 500, 250);
}

TEST(CostEstimateTest, OldObservationsFade) {
  CostEstimate cost;
  for (int i = 0; i < 10; ++i) cost.Observe(1000, microseconds(50'000));
  for (int i = 0; i < 10'000; ++i) cost.Observe(20, microseconds(200));
  EXPECT_NEAR(Of(cost, 1000), 10'000, 200);
}

TEST(CostEstimateTest, IsNeverNegative) {
  CostEstimate falling;
  for (int i = 0; i < 10; ++i) {
    falling.Observe(10, microseconds(900));
    falling.Observe(500, microseconds(800));
  }
  EXPECT_EQ(falling.line().per_row, 0);
  EXPECT_GT(Of(falling, 1), 700);

  CostEstimate steep;
  for (int i = 0; i < 10; ++i) {
    steep.Observe(10, microseconds(10));
    steep.Observe(500, microseconds(5000));
    steep.Observe(1000, microseconds(20'000));
  }
  EXPECT_GE(steep.line().fixed, 0);
  EXPECT_GT(Of(steep, 1), 0);
}

using std::chrono::milliseconds;

void Learn(JoinedShare* share, int64_t rows, milliseconds alone, milliseconds together) {
  for (int i = 0; i < 100; ++i) share->Observe(rows, alone, together);
}

TEST(JoinedShareTest, JoiningIsAssumedToPay) {
  JoinedShare share;
  EXPECT_TRUE(share.Pays(100));
  EXPECT_LE(share.Of(100), 1);
}

TEST(JoinedShareTest, TheRatioIsLearnedSeparatelyBySize) {
  JoinedShare share;
  Learn(&share, 100, milliseconds(10), milliseconds(6));
  Learn(&share, 1000, milliseconds(10), milliseconds(12));
  EXPECT_NEAR(share.Of(120), 0.6, 0.01);
  EXPECT_TRUE(share.Pays(120));
  EXPECT_EQ(share.Of(600), 1);
  EXPECT_FALSE(share.Pays(600));
  EXPECT_TRUE(share.Pays(300));
}

TEST(JoinedShareTest, JoiningIsTriedAgainAfterAFewHundredRefusals) {
  JoinedShare share;
  Learn(&share, 1000, milliseconds(10), milliseconds(12));
  int kept_alone = 0;
  while (!share.Pays(1000)) ++kept_alone;
  EXPECT_GT(kept_alone, 100);
  EXPECT_LT(kept_alone, 10000);
  share.Observe(1000, milliseconds(10), milliseconds(12));
  EXPECT_FALSE(share.Pays(1000));
}

TEST(JoinedShareTest, OneObservationChangesTheRatioLittle) {
  JoinedShare share;
  Learn(&share, 100, milliseconds(10), milliseconds(6));
  share.Observe(100, milliseconds(10), milliseconds(10'000));
  EXPECT_TRUE(share.Pays(100));
}

TEST(JoinedShareTest, RequestsOfUnknownCostTeachNothing) {
  JoinedShare share;
  Learn(&share, 100, milliseconds(0), milliseconds(12));
  EXPECT_TRUE(share.Pays(100));
}

TEST(MemoryEstimateTest, BeforeTheFirstRunTheEstimateIsHigh) {
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

TEST(MemoryEstimateTest, OneRunTeachesNothing) {
  MemoryEstimate memory;
  memory.Observe(1000, 5'000'000);
  EXPECT_EQ(memory.Of(1000), 1000 * MemoryEstimate::kFirstBytesPerByte);
  memory.Observe(1000, 4'000'000);
  EXPECT_EQ(memory.Of(1000), 4'000'000);
}

TEST(MemoryEstimateTest, WithOneSizeMemoryIsProportionalToBytes) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 1000, 5'000'000);
  EXPECT_EQ(memory.Of(1000), 5'000'000);
  EXPECT_NEAR(static_cast<double>(memory.Of(100'000)), 5e8, 1e7);
}

TEST(MemoryEstimateTest, RunsTooSmallToMeasureTeachNothingAboutLargerOnes) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 100, 64 << 10);
  EXPECT_LT(memory.Of(3 * kMiB), 64 * kMiB);
}

TEST(MemoryEstimateTest, SmallRunsTeachTheMemoryOfAHugeRun) {
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

TEST(MemoryEstimateTest, TheEstimateIsAnUpperBound) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 100, 1000);
  for (int i = 0; i < 20; ++i) memory.Observe(10'000, i < 2 ? 100'000 : 2000);
  EXPECT_GT(memory.Of(10'000), 80'000);
  for (int i = 0; i < 1000; ++i) memory.Observe(10'000, 2000);
  EXPECT_LT(memory.Of(10'000), 3000);
}

TEST(MemoryEstimateTest, OneOutlierChangesNothing) {
  for (const int64_t rows : {1, 20, 100, 500, 5000}) {
    MemoryEstimate memory;
    Learnt(&memory)->Observe(kRowBytes * rows, int64_t{1} << 40);
    for (const int64_t other : {1, 20, 100, 500, 5000, 50'000}) {
      EXPECT_EQ(memory.Of(kRowBytes * other), TakenBy(other)) << rows << ' ' << other;
    }
  }
}

TEST(MemoryEstimateTest, AnOutlierOfANewSizeChangesNothing) {
  MemoryEstimate memory;
  for (const int64_t input : {60, 2 * 600, 40 * 600, 100'000 * 600}) {
    Learnt(&memory)->Observe(input, int64_t{1} << 40);
    EXPECT_EQ(memory.Of(kRowBytes * 5243), TakenBy(5243)) << input;  // 3 MiB
  }
}

// Some small runs create callables, a one-time cost of megabytes; larger runs do not cost more.
TEST(MemoryEstimateTest, OutliersOfSmallRunsAreNotMultipliedForLargeOnes) {
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

TEST(MemoryEstimateTest, AnObservationCountsAtMostFourTimesTheEstimate) {
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

TEST(RunMemoryTest, RunningRequestsShareTheMemory) {
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

TEST(RunMemoryTest, ARunBeyondTheLimitDoesNotWait) {
  RunMemory memory({/*max_bytes=*/100});
  RunMemory::Share share;
  EXPECT_EQ(memory.Reserve(101, &share), Answer::kNever);
  EXPECT_TRUE(memory.MayRun(101));  // refused without waiting
}

TEST(RunMemoryTest, ALargeRunNeedsMemoryBesideTheReservedMemory) {
  constexpr int64_t kMiB = 1 << 20;
  RunMemory memory({/*max_bytes=*/1000 * kMiB, [] { return 300 * kMiB; }});
  RunMemory::Share first, second, small;
  EXPECT_EQ(memory.Reserve(301 * kMiB, &first), Answer::kNever);
  EXPECT_EQ(memory.Reserve(200 * kMiB, &first), Answer::kYes);
  EXPECT_EQ(memory.Reserve(101 * kMiB, &second), Answer::kNever);
  EXPECT_EQ(memory.Reserve(kMiB, &small), Answer::kYes);
}

constexpr CostEstimate::Duration kNoShortRequests = CostEstimate::Duration::max();
constexpr CostEstimate::Line kUnknown{0, 0};
// 0.4 ms and 0.01 ms per row: 1,000 rows take 10.4 ms.
constexpr CostEstimate::Line kWide{0.4e6, 0.01e6};

TEST(SliceSizeTest, RowsPerSliceFollowIdleWorkersShortRequestsAndCost) {
  const struct {
    const char* name;
    int64_t rows;
    CostEstimate::Line cost;
    SliceNeeds needs;
    int64_t rows_per_slice;
  } kCases[] = {
      {"nobody is idle, nobody else waits", 1000, kWide, {0, kNoShortRequests}, 1000},
      {"one more worker", 1000, kWide, {1, kNoShortRequests}, 500},
      {"three more", 1000, kWide, {3, kNoShortRequests}, 250},
      {"not more slices than their fixed part is worth",
       500,
       {4e6, 0.01e6},
       {3, kNoShortRequests},
       250},
      {"too small to cut", 20, kWide, {3, kNoShortRequests}, 20},
      {"short requests wait 2 ms: 0.4 + 160 rows", 1000, kWide, {0, milliseconds(2)}, 143},
      {"both: the smaller slice", 1000, kWide, {1, milliseconds(2)}, 143},
      {"shorter than short requests may wait", 100, kWide, {0, milliseconds(2)}, 100},
      {"a fixed part above the wait: slices of twice that",
       1000,
       {4e6, 0.04e6},
       {0, milliseconds(2)},
       100},
      {"too short to wake another worker for", 100, kWide, {3, kNoShortRequests}, 100},
      {"much too short", 20, {0, 0.01e6}, {3, kNoShortRequests}, 20},
      {"nothing is known yet", 1000, kUnknown, {3, milliseconds(2)}, 1000},
      {"what nothing is known of is cut to be learned from",
       262'144,
       kUnknown,
       {1, kNoShortRequests},
       997},
      {"the same beside short requests", 262'144, kUnknown, {0, milliseconds(2)}, 997},
      {"it is not cut where nobody gains", 262'144, kUnknown, {0, kNoShortRequests}, 262'144},
      {"a limit holds, known or not", 1000, kUnknown, {0, kNoShortRequests, 300}, 250},
      {"a limit above the rows", 200, kWide, {0, kNoShortRequests, 300}, 200},
      {"one row", 1, kWide, {3, milliseconds(2)}, 1},
      {"no rows", 0, kWide, {3, milliseconds(2)}, 0},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(RowsPerSlice(c.rows, c.cost, c.needs), c.rows_per_slice) << c.name;
  }
}

}  // namespace
}  // namespace colcast::scheduling
