#include "server/states/reuse_estimator.h"

#include <gtest/gtest.h>

#include <vector>

namespace colcast::states {
namespace {

// Notes rows [first, first + count).
void Note(ReuseEstimator* reuse, uint64_t first, uint64_t count) {
  const KeyHash hash({1, 2, 3, 4});
  std::vector<Key> keys;
  for (uint64_t row = first; row < first + count; ++row) keys.push_back(hash(&row, sizeof(row)));
  reuse->Note(keys.data(), keys.size());
}

int LookedAtOf(ReuseEstimator* reuse, int requests) {
  int looked = 0;
  for (int i = 0; i < requests; ++i) looked += reuse->Look();
  return looked;
}

TEST(ReuseEstimator, AreGoodUntilAWindowSaysOtherwise) {
  ReuseEstimator reuse(100);
  Note(&reuse, 0, 99);
  EXPECT_TRUE(reuse.good());
  Note(&reuse, 99, 1);
  EXPECT_FALSE(reuse.good());
}

TEST(ReuseEstimator, StayGoodWhileOneRowOf32CameBefore) {
  ReuseEstimator reuse(320);
  Note(&reuse, 0, 310);
  Note(&reuse, 0, 10);
  EXPECT_TRUE(reuse.good());
  Note(&reuse, 1000, 311);
  Note(&reuse, 1000, 9);
  EXPECT_FALSE(reuse.good());
}

TEST(ReuseEstimator, AreGoodAgainOnceRowsComeAgain) {
  ReuseEstimator reuse(100);
  Note(&reuse, 0, 100);
  ASSERT_FALSE(reuse.good());
  Note(&reuse, 0, 100);
  EXPECT_TRUE(reuse.good());
}

TEST(ReuseEstimator, WithoutAnyOneRequestInSixteenIsLookedAt) {
  ReuseEstimator reuse(100);
  for (int64_t i = 0; i < ReuseEstimator::kWindowsToWatch; ++i) {
    EXPECT_EQ(LookedAtOf(&reuse, 16), 16);
    Note(&reuse, 100 * i, 100);
  }
  EXPECT_EQ(LookedAtOf(&reuse, 160), 10);
  Note(&reuse, 0, 100);
  EXPECT_EQ(LookedAtOf(&reuse, 160), 160);
}

}  // namespace
}  // namespace colcast::states
