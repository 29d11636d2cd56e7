#include "server/states/prospects.h"

#include <gtest/gtest.h>

#include <vector>

namespace colcast::states {
namespace {

// Notes rows [first, first + count).
void Note(Prospects* prospects, uint64_t first, uint64_t count) {
  const KeyHash hash({1, 2, 3, 4});
  std::vector<Key> keys;
  for (uint64_t row = first; row < first + count; ++row) keys.push_back(hash(&row, sizeof(row)));
  prospects->Note(keys.data(), keys.size());
}

int LookedAtOf(Prospects* prospects, int requests) {
  int looked = 0;
  for (int i = 0; i < requests; ++i) looked += prospects->Look();
  return looked;
}

TEST(Prospects, AreGoodUntilAStretchSaysOtherwise) {
  Prospects prospects(100);
  Note(&prospects, 0, 99);
  EXPECT_TRUE(prospects.good());
  Note(&prospects, 99, 1);
  EXPECT_FALSE(prospects.good());
}

TEST(Prospects, StayGoodWhileOneRowOf32CameBefore) {
  Prospects prospects(320);
  Note(&prospects, 0, 310);
  Note(&prospects, 0, 10);
  EXPECT_TRUE(prospects.good());
  Note(&prospects, 1000, 311);
  Note(&prospects, 1000, 9);
  EXPECT_FALSE(prospects.good());
}

TEST(Prospects, AreGoodAgainOnceRowsComeAgain) {
  Prospects prospects(100);
  Note(&prospects, 0, 100);
  ASSERT_FALSE(prospects.good());
  Note(&prospects, 0, 100);
  EXPECT_TRUE(prospects.good());
}

TEST(Prospects, WithoutAnyOneRequestInSixteenIsLookedAt) {
  Prospects prospects(100);
  for (int64_t i = 0; i < Prospects::kStretchesToWatch; ++i) {
    EXPECT_EQ(LookedAtOf(&prospects, 16), 16);
    Note(&prospects, 100 * i, 100);
  }
  EXPECT_EQ(LookedAtOf(&prospects, 160), 10);
  Note(&prospects, 0, 100);
  EXPECT_EQ(LookedAtOf(&prospects, 160), 160);
}

}  // namespace
}  // namespace colcast::states
