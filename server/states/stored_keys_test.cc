#include "server/states/stored_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace colcast::states {
namespace {

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
  stored.Insert(RowsOf(1, numbers), {{1, 2}});  // by a request that came before
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
