#include "server/engine/row_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

TEST(RowIndexTest, AnIndexHasTheNameOfItsDomain) {
  EXPECT_EQ(RowTo("user"), kRowToUser);
  EXPECT_TRUE(IsRowIndex("row_to_shop"));
  EXPECT_FALSE(IsRowIndex("row"));
}

TEST(RowIndexTest, EachCandidateMayReadItsOwnRow) {
  EXPECT_THAT(RowsIn(EachRow(3)), ElementsAre(0, 1, 2));
  EXPECT_TRUE(RowsIn(EachRow(0)).empty());
}

}  // namespace
}  // namespace colcast::engine
