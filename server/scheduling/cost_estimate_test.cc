#include "server/scheduling/cost_estimate.h"

#include <gtest/gtest.h>

#include <chrono>

#include "server/scheduling/request_class.h"

namespace colcast::scheduling {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// The estimate in microseconds.
double Of(const CostEstimate& cost, int64_t rows) {
  return std::chrono::duration<double, std::micro>(cost.Of(rows)).count();
}

TEST(CostEstimateTest, NothingIsKnownBeforeTheFirstRun) {
  EXPECT_EQ(CostEstimate().Of(20), CostEstimate::Duration::zero());
}

TEST(CostEstimateTest, OneSizeAloneIsTakenToCostByTheRow) {
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

TEST(CostEstimateTest, TwoSizesTellTheFixedPart) {
  CostEstimate cost;
  for (int i = 0; i < 20; ++i) {
    cost.Observe(20, microseconds(400 + 20 * 10));
    cost.Observe(1000, microseconds(400 + 1000 * 10));
  }
  EXPECT_NEAR(cost.line().fixed, 400e3, 20e3);
  EXPECT_NEAR(cost.line().per_row, 10e3, 0.2e3);
}

TEST(CostEstimateTest, SizesThatLieCloseSayLittleOfTheFixedPart) {
  CostEstimate cost;
  cost.Observe(500, milliseconds(9));
  for (int i = 0; i < 20; ++i) cost.Observe(1000, milliseconds(8));
  EXPECT_GE(cost.line().per_row * 1000, 3.5e6);
  EXPECT_NEAR(Of(cost, 1000), 8000, 1000);
}

TEST(CostEstimateTest, AFewLargeRequestsAreNotDrownedOutByManySmallOnes) {
  CostEstimate cost;
  for (int i = 0; i < 1000; ++i) {
    cost.Observe(18 + i % 6, microseconds(400 + (18 + i % 6) * 10));
    if (i % 200 == 0) cost.Observe(1000, microseconds(400 + 1000 * 10));
  }
  EXPECT_NEAR(Of(cost, 1000), 10'400, 300);
}

TEST(CostEstimateTest, FollowsWhatChanges) {
  CostEstimate cost;
  for (int i = 0; i < 100; ++i) cost.Observe(20, microseconds(600));
  for (int i = 0; i < 50; ++i) cost.Observe(20, microseconds(200));
  EXPECT_NEAR(Of(cost, 20), 200, 10);
}

TEST(CostEstimateTest, OneRequestSaysLittleAboutOthers) {
  CostEstimate cost;
  for (int i = 0; i < 10; ++i) cost.Observe(20, microseconds(600));
  cost.Observe(20, std::chrono::seconds(60));
  EXPECT_LT(Of(cost, 20), 2 * 600);
}

TEST(CostEstimateTest, RequestsOfTwoRowsWithHugeListsSayLittleAboutThoseOfTwenty) {
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

TEST(CostEstimateTest, WhatIsNoLongerSeenFades) {
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

TEST(JoinedShareTest, WhatIsNotKnownIsTakenToPay) {
  JoinedShare share;
  EXPECT_TRUE(share.Pays(100));
  EXPECT_LE(share.Of(100), 1);
}

TEST(JoinedShareTest, IsLearntForRunsOfAboutTheSameRows) {
  JoinedShare share;
  Learn(&share, 100, milliseconds(10), milliseconds(6));
  Learn(&share, 1000, milliseconds(10), milliseconds(12));
  EXPECT_NEAR(share.Of(120), 0.6, 0.01);
  EXPECT_TRUE(share.Pays(120));
  EXPECT_EQ(share.Of(600), 1);
  EXPECT_FALSE(share.Pays(600));
  EXPECT_TRUE(share.Pays(300));
}

TEST(JoinedShareTest, WhatDoesNotPayIsTriedAgainAfterSomeHundredRequests) {
  JoinedShare share;
  Learn(&share, 1000, milliseconds(10), milliseconds(12));
  int kept_alone = 0;
  while (!share.Pays(1000)) ++kept_alone;
  EXPECT_GT(kept_alone, 100);
  EXPECT_LT(kept_alone, 10000);
  share.Observe(1000, milliseconds(10), milliseconds(12));
  EXPECT_FALSE(share.Pays(1000));
}

TEST(JoinedShareTest, OneObservationSaysLittle) {
  JoinedShare share;
  Learn(&share, 100, milliseconds(10), milliseconds(6));
  share.Observe(100, milliseconds(10), milliseconds(10'000));
  EXPECT_TRUE(share.Pays(100));
}

TEST(JoinedShareTest, NothingIsLearntFromRequestsOfUnknownCost) {
  JoinedShare share;
  Learn(&share, 100, milliseconds(0), milliseconds(12));
  EXPECT_TRUE(share.Pays(100));
}

TEST(RequestClassTest, ARowWithFarMoreBytesThanUsualCountsAsManyRows) {
  RequestClass of({});
  EXPECT_EQ(of.SizeOf(1, 1 << 30), 1) << "nothing has run";
  for (int i = 0; i < 10; ++i) of.NoteBytes(20, 20 * 1000);
  EXPECT_EQ(of.SizeOf(20, 20 * 1000), 20);
  EXPECT_EQ(of.SizeOf(20, 20 * 60'000), 20) << "lists differ";
  EXPECT_EQ(of.SizeOf(1, 512'000'000), 512'000);
}

}  // namespace
}  // namespace colcast::scheduling
