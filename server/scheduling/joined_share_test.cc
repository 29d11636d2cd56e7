#include "server/scheduling/joined_share.h"

#include <gtest/gtest.h>

#include <chrono>

namespace colcast::scheduling {
namespace {

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

}  // namespace
}  // namespace colcast::scheduling
