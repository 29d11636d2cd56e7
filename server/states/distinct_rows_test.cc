#include "server/states/distinct_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace colcast::states {
namespace {

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
