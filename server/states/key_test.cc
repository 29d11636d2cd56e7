#include "server/states/key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace colcast::states {
namespace {

Key HashOf(const KeyHash& hash, const std::string& text) { return hash(text.data(), text.size()); }

TEST(KeyHash, GivesTheSameBytesTheSameKey) {
  const KeyHash hash;
  EXPECT_EQ(HashOf(hash, "user 7"), HashOf(hash, "user 7"));
}

TEST(KeyHash, TellsBytesApart) {
  const KeyHash hash;
  EXPECT_NE(HashOf(hash, "user 7"), HashOf(hash, "user 8"));
  EXPECT_NE(HashOf(hash, ""), HashOf(hash, std::string(1, '\0')));
}

TEST(KeyHash, DrawsASecretOfItsOwn) {
  EXPECT_NE(HashOf(KeyHash(), "user 7"), HashOf(KeyHash(), "user 7"));
}

// From HighwayHash's own list for this key, so that the library is what it says it is.
TEST(KeyHash, IsHighwayHash) {
  const KeyHash hash(
      {0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x1716151413121110, 0x1F1E1D1C1B1A1918});
  const Key key = HashOf(hash, "");
  EXPECT_EQ(key.low, 0x0FED268F9D8FFEC7u);
  EXPECT_EQ(key.high, 0x33565E767F093E6Fu);
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The second has the first one's low word.
const Key kA = {1, 7}, kB = {2, 7}, kC = {1, 8};

TEST(FindDistinctRows, GivesTheFirstRowOfEachKeyAndItsPlaceForEachRow) {
  std::vector<int64_t> first, index;
  ASSERT_TRUE(FindDistinctRows({kA, kB, kA, kC, kB}, 3, &first, &index));
  EXPECT_THAT(first, ElementsAre(0, 1, 3));
  EXPECT_THAT(index, ElementsAre(0, 1, 0, 2, 1));
}

TEST(FindDistinctRows, GivesUpBeyondTheMost) {
  std::vector<int64_t> first, index;
  EXPECT_FALSE(FindDistinctRows({kA, kB, kA, kC, kB}, 2, &first, &index));
}

TEST(FindDistinctRows, NoRowsHaveNoKeys) {
  std::vector<int64_t> first = {1}, index = {1};
  ASSERT_TRUE(FindDistinctRows({}, 0, &first, &index));
  EXPECT_THAT(first, IsEmpty());
  EXPECT_THAT(index, IsEmpty());
}

}  // namespace
}  // namespace colcast::states
