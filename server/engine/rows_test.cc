#include "server/engine/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

TEST(RowIndexTest, AnIndexIsNamedAfterItsDomain) {
  EXPECT_EQ(RowTo("user"), kRowToUser);
  EXPECT_TRUE(IsRowIndex("row_to_shop"));
  EXPECT_FALSE(IsRowIndex("row"));
}

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;
using ::testing::HasSubstr;

const Tensor kPairs = AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2});

TEST(RowsTest, BytesOfRowsIncludeStrings) {
  EXPECT_EQ(BytesOfRows(kPairs, {0, 0, 1}), 3 * 2 * sizeof(float));
  const Tensor texts = AsTensor<tstring>({"", std::string(1000, 'x')}, {2});
  EXPECT_GE(BytesOfRows(texts, {1, 1}), 2000);
  EXPECT_LT(BytesOfRows(texts, {0, 0}), 1000);
}

TEST(GatheredRowsTest, GatheredBytesAreBounded) {
  GatheredRows gathered(/*max_bytes=*/32);
  Tensor feed = AsTensor<float>({1, 2}, {2});
  ASSERT_TRUE(gathered.Gather({1, 1, 0, 1}, &feed).ok());  // 16 bytes
  EXPECT_EQ(feed.flat<float>()(2), 1);
  ASSERT_TRUE(gathered.Gather({0, 1, 2, 3}, &feed).ok());
  const absl::Status status = gathered.Gather({0}, &feed);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("max_expanded_bytes is 32"));
  EXPECT_THAT(ElementsOf(feed), ElementsAre(2, 2, 1, 2));
}

// A tensor of this shape, whose elements are 10 * user + position.
Tensor Output(const TensorShape& shape, int64_t user) {
  Tensor tensor(tensorflow::DT_INT64, shape);
  auto* const values = static_cast<int64_t*>(tensor.data());
  for (int64_t i = 0; i < tensor.NumElements(); ++i) values[i] = 10 * user + i;
  return tensor;
}

TEST(ByUser, EachUsersRowsRunSeparatelyAndKeepTheirPlaces) {
  RunResult result;
  std::vector<std::vector<int64_t>> runs;
  const auto run = [&](int64_t user, absl::Span<const int64_t> rows, RunResult* of_user) {
    runs.push_back({rows.begin(), rows.end()});
    of_user->aliases = {"score"};
    of_user->tensors = {Output({static_cast<int64_t>(rows.size())}, user)};
    return absl::OkStatus();
  };
  ASSERT_TRUE(RunByUser({2, 0, 2, 0, 0}, 4, run, &result).ok());
  EXPECT_THAT(runs, ElementsAre(ElementsAre(1, 3, 4), ElementsAre(0, 2)));
  EXPECT_THAT(result.aliases, ElementsAre("score"));
  EXPECT_THAT(ElementsOf<int64_t>(result.tensors[0]), ElementsAre(20, 0, 21, 1, 2));
}

TEST(ByUser, ErrorsNameTheOutputWithoutOneRowPerCandidate) {
  for (const TensorShape& shape : {TensorShape(), TensorShape({1}), TensorShape({3, 2})}) {
    RunResult result;
    const auto run = [&](int64_t user, absl::Span<const int64_t>, RunResult* of_user) {
      of_user->aliases = {"score"};
      of_user->tensors = {Output(shape, user)};
      return absl::OkStatus();
    };
    const absl::Status status = RunByUser({0, 0, 1, 1}, 2, run, &result);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << shape.DebugString();
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"score\""));
    EXPECT_THAT(std::string(status.message()), HasSubstr(shape.DebugString()));
  }
}

TEST(ByUser, ErrorsNameTheOutputWhoseRowShapesDiffer) {
  RunResult result;
  const auto run = [&](int64_t user, absl::Span<const int64_t> rows, RunResult* of_user) {
    of_user->aliases = {"letters"};
    of_user->tensors = {Output({static_cast<int64_t>(rows.size()), 2 + user}, user)};
    return absl::OkStatus();
  };
  const absl::Status status = RunByUser({0, 1}, 2, run, &result);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"letters\""));
}

TEST(ByUser, AFeedWithoutRowsIsKeptWhole) {
  DeclaredInput setting;
  Tensor some;
  ASSERT_TRUE(PickRows(setting, Output({}, 4), {0, 0, 0}, &some).ok());
  EXPECT_THAT(ElementsOf<int64_t>(some), ElementsAre(40));
  DeclaredInput rows;
  rows.dims = {-1};
  ASSERT_TRUE(PickRows(rows, Output({3}, 0), {2, 0}, &some).ok());
  EXPECT_THAT(ElementsOf<int64_t>(some), ElementsAre(2, 0));
}

}  // namespace
}  // namespace colcast::engine
