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

// From HighwayHash's own test vectors for this key.
TEST(KeyHash, IsHighwayHash) {
  const KeyHash hash(
      {0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x1716151413121110, 0x1F1E1D1C1B1A1918});
  const Key key = HashOf(hash, "");
  EXPECT_EQ(key.low, 0x0FED268F9D8FFEC7u);
  EXPECT_EQ(key.high, 0x33565E767F093E6Fu);
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// kA and kB differ only in the high word.
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

using testing::ElementsAre;

StoredRows RowsOf(uint64_t table, const std::vector<uint32_t>& numbers) {
  return {table, Span<uint32_t>(numbers)};
}

TEST(StoredKeysTest, FindsWhatWasInserted) {
  StoredKeys stored;
  std::vector<Key> keys;
  const std::vector<uint32_t> numbers = {7, 1'000'000, 0};
  EXPECT_FALSE(stored.Find(RowsOf(1, numbers), &keys));
  stored.Insert(RowsOf(1, numbers), {{1, 2}, {3, 4}, {5, 6}});
  const std::vector<uint32_t> others = {0, 7};
  ASSERT_TRUE(stored.Find(RowsOf(1, others), &keys));
  EXPECT_THAT(keys, ElementsAre(Key{5, 6}, Key{1, 2}));
}

TEST(StoredKeysTest, NeedsAllRows) {
  StoredKeys stored;
  std::vector<Key> keys;
  const std::vector<uint32_t> known = {1}, both = {1, 2};
  stored.Insert(RowsOf(1, known), {{1, 2}});
  EXPECT_FALSE(stored.Find(RowsOf(1, both), &keys));
}

TEST(StoredKeysTest, ANewTableTakesThePlaceOfTheOneBefore) {
  StoredKeys stored;
  std::vector<Key> keys;
  const std::vector<uint32_t> numbers = {1};
  stored.Insert(RowsOf(1, numbers), {{1, 2}});
  stored.Insert(RowsOf(2, numbers), {{3, 4}});
  EXPECT_FALSE(stored.Find(RowsOf(1, numbers), &keys));
  stored.Insert(RowsOf(1, numbers), {{1, 2}});  // cached by an earlier request
  ASSERT_TRUE(stored.Find(RowsOf(2, numbers), &keys));
  EXPECT_THAT(keys, ElementsAre(Key{3, 4}));
}

TEST(StoredKeysTest, RowsBeyondWhatIsRememberedAreNotFound) {
  StoredKeys stored;
  std::vector<Key> keys;
  const std::vector<uint32_t> numbers = {UINT32_MAX};
  stored.Insert(RowsOf(1, numbers), {{1, 2}});
  EXPECT_FALSE(stored.Find(RowsOf(1, numbers), &keys));
}

}  // namespace
}  // namespace colcast::states
