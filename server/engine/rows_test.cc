#include "server/engine/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/testing.h"

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

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kPairs = AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2});

std::vector<float> Floats(const Tensor& tensor) {
  const auto values = tensor.flat<float>();
  return {values.data(), values.data() + values.size()};
}

TEST(RowsTest, AnOutputWithOtherRowsIsNamed) {
  EXPECT_TRUE(CheckRows({"pairs"}, {kPairs}, 3).ok());
  const absl::Status status = CheckRows({"pairs"}, {kPairs}, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pairs"));
  EXPECT_FALSE(CheckRows({"number"}, {AsTensor<float>({1}, {})}, 1).ok());
}

TEST(RowsTest, GatheredRowsComeInTheOrderAskedFor) {
  Tensor some;
  ASSERT_TRUE(GatherRows(kPairs, {2, 0, 2}, &some).ok());
  EXPECT_THAT(Floats(some), ElementsAre(5, 6, 1, 2, 5, 6));
  Tensor same = kPairs;
  ASSERT_TRUE(GatherRows(same, {1}, &same).ok());
  EXPECT_THAT(Floats(same), ElementsAre(3, 4));
}

TEST(RowsTest, BytesOfRowsCountStringsToo) {
  EXPECT_EQ(BytesOfRows(kPairs, {0, 0, 1}), 3 * 2 * sizeof(float));
  const Tensor texts = AsTensor<tstring>({"", std::string(1000, 'x')}, {2});
  EXPECT_GE(BytesOfRows(texts, {1, 1}), 2000);
  EXPECT_LT(BytesOfRows(texts, {0, 0}), 1000);
}

TEST(RowsTest, RowsAreCopiedBetweenTensorsOfOneInnerShape) {
  EXPECT_TRUE(HaveRowsOfOneShape(kPairs, Tensor(tensorflow::DT_FLOAT, TensorShape({9, 2}))));
  EXPECT_FALSE(HaveRowsOfOneShape(kPairs, Tensor(tensorflow::DT_FLOAT, TensorShape({3, 1}))));
  EXPECT_EQ(RowElements(kPairs), 2);
  Tensor out;
  ASSERT_TRUE(MakeRows(kPairs, 1, &out).ok());
  CopyRow(kPairs, 1, 0, &out);
  EXPECT_THAT(Floats(out), ElementsAre(3, 4));
}

}  // namespace
}  // namespace colcast::engine
