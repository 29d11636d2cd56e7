#include "server/scheduling/cost.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

namespace colcast::scheduling {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Runs {
  int times;
  int64_t rows;
  int64_t microseconds;
};

TEST(CostEstimateTest, CostsAreEstimatedForAnyNumberOfRows) {
  const double kDay = 24 * 3600e6;
  const struct {
    const char* name;
    int rounds;
    std::vector<Runs> runs;
    int64_t rows;
    double least, most;  // microseconds
  } kCases[] = {
      {"unknown before the first run", 0, {}, 20, 0, 0},
      {"one size", 1, {{3, 20, 600}}, 20, 599, 601},
      {"one size: in proportion to rows", 1, {{3, 20, 600}}, 200, 5990, 6010},
      {"any number of rows has a cost", 1, {{1, 20, 600}}, INT64_MAX, kDay, kDay},
      {"two sizes: the fixed cost", 20, {{1, 20, 600}, {1, 1000, 10'400}}, 1, 390, 430},
      {"two sizes: that of rows", 20, {{1, 20, 600}, {1, 1000, 10'400}}, 100'000, 980e3, 1020e3},
      {"similar sizes: the mean", 1, {{1, 500, 9000}, {20, 1000, 8000}}, 1000, 7000, 9000},
      {"similar sizes: mostly rows", 1, {{1, 500, 9000}, {20, 1000, 8000}}, 11'000, 42e3, 99e3},
      {"few large among many", 5, {{1, 1000, 10'400}, {200, 20, 600}}, 1000, 10'100, 10'700},
      {"the model is faster", 1, {{100, 20, 600}, {50, 20, 200}}, 20, 190, 210},
      {"one slow run", 1, {{10, 20, 600}, {1, 20, 60'000'000}}, 20, 0, 1200},
      {"slow runs of two rows", 1, {{12, 2, 1'000'000}, {3, 20, 500}}, 20, 250, 750},
      {"old runs fade", 1, {{10, 1000, 50'000}, {10'000, 20, 200}}, 1000, 9800, 10'200},
      {"rows that cost nothing", 10, {{1, 10, 900}, {1, 500, 800}}, 1, 700, 900},
      {"the same, many rows", 10, {{1, 10, 900}, {1, 500, 800}}, 1'000'000, 700, 900},
      {"no fixed cost", 10, {{1, 10, 10}, {1, 500, 5000}, {1, 1000, 20'000}}, 1, 0.001, 100},
  };
  for (const auto& c : kCases) {
    CostEstimate cost;
    for (int round = 0; round < c.rounds; ++round) {
      for (const Runs& runs : c.runs) {
        for (int i = 0; i < runs.times; ++i)
          cost.Observe(runs.rows, microseconds(runs.microseconds));
      }
    }
    const double of = std::chrono::duration<double, std::micro>(cost.Of(c.rows)).count();
    EXPECT_GE(of, c.least) << c.name;
    EXPECT_LE(of, c.most) << c.name;
  }
}

void Learn(JoinedShare* share, int64_t rows, milliseconds alone, milliseconds together) {
  for (int i = 0; i < 100; ++i) share->Observe(rows, alone, together);
}

TEST(JoinedShareTest, TheRatioIsLearnedSeparatelyForEachSize) {
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

TEST(JoinedShareTest, RequestsOfUnknownCostAreIgnored) {
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

TEST(MemoryEstimateTest, TheEstimateStaysHighUntilTheSecondRun) {
  MemoryEstimate memory;
  memory.Observe(1000, 5'000'000);
  EXPECT_EQ(memory.Of(1000), 1000 * MemoryEstimate::kFirstBytesPerByte);
  memory.Observe(1000, 4'000'000);
  EXPECT_EQ(memory.Of(1000), 4'000'000);
}

TEST(MemoryEstimateTest, RunsTooSmallToMeasureDoNotInflateLargeEstimates) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 100, 64 << 10);
  EXPECT_LT(memory.Of(3 * kMiB), 64 * kMiB);
}

TEST(MemoryEstimateTest, MemoryOfAHugeRunIsExtrapolatedFromSmallRuns) {
  MemoryEstimate memory;
  for (const int64_t rows : {20, 100, 1000})
    ObserveTwice(&memory, 64 * rows, 100'000 + 3000 * rows);
  EXPECT_NEAR(static_cast<double>(memory.Of(64 << 20)), 3000.0 * (1 << 20), 1e8);
}

TEST(MemoryEstimateTest, CheapSmallRunsDoNotMakeAHugeRunCheap) {
  MemoryEstimate memory;
  for (const int64_t rows : {20, 100, 1000}) ObserveTwice(&memory, 640 * rows, 1'000'000 + rows);
  EXPECT_LT(memory.Of(640 * 16'000), 16 * kMiB) << "near enough to those that ran";
  EXPECT_GT(memory.Of(512 * kMiB), 7 * 1024 * kMiB);
}

TEST(MemoryEstimateTest, TheEstimateFollowsRecentPeaks) {
  MemoryEstimate memory;
  ObserveTwice(&memory, 100, 1000);
  for (int i = 0; i < 20; ++i) memory.Observe(10'000, i < 2 ? 100'000 : 2000);
  EXPECT_GT(memory.Of(10'000), 80'000);
  for (int i = 0; i < 1000; ++i) memory.Observe(10'000, 2000);
  EXPECT_LT(memory.Of(10'000), 3000);
}

TEST(MemoryEstimateTest, OneOutlierDoesNotChangeEstimates) {
  for (const int64_t rows : {1, 20, 100, 500, 5000}) {
    MemoryEstimate memory;
    Learnt(&memory)->Observe(kRowBytes * rows, int64_t{1} << 40);
    for (const int64_t other : {1, 20, 100, 500, 5000, 50'000}) {
      EXPECT_EQ(memory.Of(kRowBytes * other), TakenBy(other)) << rows << ' ' << other;
    }
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

using Answer = RunBudget::Answer;

TEST(RunBudgetTest, RunningRequestsShareTheMemory) {
  RunBudget memory({/*max_bytes=*/100});
  {
    RunBudget::Share first, second, third;
    EXPECT_EQ(memory.Reserve(60, &first), Answer::kYes);
    EXPECT_EQ(memory.Reserve(41, &second), Answer::kLater);
    EXPECT_FALSE(memory.MayRun(41));
    EXPECT_EQ(memory.Reserve(40, &third), Answer::kYes);
  }
  EXPECT_TRUE(memory.MayRun(100));
  RunBudget::Share again;
  EXPECT_EQ(memory.Reserve(100, &again), Answer::kYes);
}

TEST(RunBudgetTest, ARunBeyondTheLimitIsRefusedWithoutWaiting) {
  RunBudget memory({/*max_bytes=*/100});
  RunBudget::Share share;
  EXPECT_EQ(memory.Reserve(101, &share), Answer::kNever);
  EXPECT_TRUE(memory.MayRun(101));  // refused without waiting
}

TEST(RunBudgetTest, ALargeRunNeedsAvailableMemoryBeyondReservations) {
  constexpr int64_t kMiB = 1 << 20;
  RunBudget memory({/*max_bytes=*/1000 * kMiB, [] { return 300 * kMiB; }});
  RunBudget::Share first, second, small;
  EXPECT_EQ(memory.Reserve(301 * kMiB, &first), Answer::kNever);
  EXPECT_EQ(memory.Reserve(200 * kMiB, &first), Answer::kYes);
  EXPECT_EQ(memory.Reserve(101 * kMiB, &second), Answer::kNever);
  EXPECT_EQ(memory.Reserve(kMiB, &small), Answer::kYes);
}

constexpr CostEstimate::Duration kNoShortRequests = CostEstimate::Duration::max();
constexpr CostEstimate::Line kUnknown{0, 0};
// 0.4 ms and 0.01 ms per row: 1,000 rows take 10.4 ms.
constexpr CostEstimate::Line kWide{0.4e6, 0.01e6};

TEST(SliceSizeTest, RowsPerSliceDependOnIdleWorkersShortRequestsAndCost) {
  const struct {
    const char* name;
    int64_t rows;
    CostEstimate::Line cost;
    SliceNeeds needs;
    int64_t rows_per_slice;
  } kCases[] = {
      {"nobody gains", 1000, kWide, {0, kNoShortRequests}, 1000},
      {"one idle worker", 1000, kWide, {1, kNoShortRequests}, 500},
      {"three idle", 1000, kWide, {3, kNoShortRequests}, 250},
      {"the fixed cost limits the slices", 500, {4e6, 0.01e6}, {3, kNoShortRequests}, 250},
      {"too small", 20, kWide, {3, kNoShortRequests}, 20},
      {"short requests wait 2 ms: 0.4 + 160 rows", 1000, kWide, {0, milliseconds(2)}, 143},
      {"both: the smaller", 1000, kWide, {1, milliseconds(2)}, 143},
      {"shorter than a slice", 100, kWide, {0, milliseconds(2)}, 100},
      {"a fixed cost above the slice: twice that", 1000, {4e6, 0.04e6}, {0, milliseconds(2)}, 100},
      {"too short to wake a worker", 100, kWide, {3, kNoShortRequests}, 100},
      {"much too short", 20, {0, 0.01e6}, {3, kNoShortRequests}, 20},
      {"unknown cost", 1000, kUnknown, {3, milliseconds(2)}, 1000},
      {"unknown cost, many rows: split", 262'144, kUnknown, {1, kNoShortRequests}, 997},
      {"the same, short requests", 262'144, kUnknown, {0, milliseconds(2)}, 997},
      {"unknown, nobody gains", 262'144, kUnknown, {0, kNoShortRequests}, 262'144},
      {"unknown, with a limit", 1000, kUnknown, {0, kNoShortRequests, 300}, 250},
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
