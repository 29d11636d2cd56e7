#include "server/engine/batch/sliced_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

// score = 10 * user + item
class SlicedRequestTest : public ::testing::Test {
 protected:
  // Returns null if the request is invalid or cannot be split.
  std::unique_ptr<Slices> Split(const std::string& message) {
    sent_ = std::make_unique<SentPlan>(model_.programs(), message, &rules_);
    return sent_->status.ok() ? SliceRequest(*sent_->plan) : nullptr;
  }

  // The score of each row. Sets `rows_` to the rows of each slice, in the order of Take().
  std::vector<float> RunBySlices(const std::string& message, int64_t rows_per_slice) {
    rows_.clear();
    const std::unique_ptr<Slices> slices = Split(message);
    if (slices == nullptr) return {};
    std::vector<int> taken;
    while (slices->rows_left() > 0) taken.push_back(slices->Take(rows_per_slice));
    EXPECT_EQ(slices->Take(rows_per_slice), -1);
    for (const int slice : taken) rows_.push_back(slices->rows(slice));
    for (auto slice = taken.rbegin(); slice != taken.rend(); ++slice) slices->Run(*slice);
    std::unique_ptr<Outputs> outputs;
    status_ = slices->Join(&outputs);
    return status_.ok() ? FirstOutput(*outputs) : std::vector<float>();
  }

  bool CanBeSplit(const BatchRules& rules) {
    return model_.programs().ProfileOf(*sent_->plan, rules).can_be_split;
  }

  ScoreModel model_;
  BatchRules rules_;
  std::vector<int64_t> rows_;
  Status status_;
  std::unique_ptr<SentPlan> sent_;
};

TEST_F(SlicedRequestTest, SlicesHaveEqualSizesAndAreJoinedInOrder) {
  const std::string request =
      FloatInput("user", {1}, {1}) + FloatInput("item", {5}, {1, 2, 3, 4, 5});
  EXPECT_THAT(RunBySlices(request, 2), ElementsAre(11, 12, 13, 14, 15));
  EXPECT_THAT(rows_, ElementsAre(2, 2, 1));
  const std::string users = FloatInput("user", {3}, {1, 2, 3});
  EXPECT_THAT(RunBySlices(users + FloatInput("item", {3}, {1, 2, 3}), 1), ElementsAre(11, 22, 33));
}

TEST_F(SlicedRequestTest, SlicesArePaddedToAllowedSizes) {
  rules_.allowed_batch_sizes = {2, 4};
  const std::string user = FloatInput("user", {1}, {1});
  EXPECT_THAT(RunBySlices(user + FloatInput("item", {5}, {1, 2, 3, 4, 5}), 3),
              ElementsAre(11, 12, 13, 14, 15));
  EXPECT_THAT(rows_, ElementsAre(4, 2));
  EXPECT_THAT(RunBySlices(user + FloatInput("item", {7}, {1, 2, 3, 4, 5, 6, 7}), 4),
              ElementsAre(11, 12, 13, 14, 15, 16, 17));
  EXPECT_THAT(rows_, ElementsAre(4, 4));
}

TEST_F(SlicedRequestTest, SingleRowAndInvalidRequestsAreNotSplit) {
  const std::string user = FloatInput("user", {1}, {1});
  EXPECT_THAT(RunBySlices(user + FloatInput("item", {1}, {1}), 1), ElementsAre());
  EXPECT_THAT(RunBySlices(FloatInput("user", {2}, {1, 2}) + FloatInput("item", {3}, {1, 2, 3}), 1),
              ElementsAre());
  EXPECT_THAT(rows_, ElementsAre());
}

TEST_F(SlicedRequestTest, ASliceHasTheRequestedRows) {
  const auto slices =
      Split(FloatInput("user", {1}, {1}) + FloatInput("item", {6}, {1, 2, 3, 4, 5, 6}));
  ASSERT_NE(slices, nullptr);
  for (const int64_t rows : {1, 2, 3}) {
    const int slice = slices->Take(rows);
    EXPECT_EQ(slices->rows(slice), rows);
    slices->Run(slice);
  }
  EXPECT_EQ(slices->rows_left(), 0);
  std::unique_ptr<Outputs> outputs;
  ASSERT_TRUE(slices->Join(&outputs).ok());
  EXPECT_THAT(FirstOutput(*outputs), ElementsAre(11, 12, 13, 14, 15, 16));
}

TEST_F(SlicedRequestTest, EachSliceIncludesTheLongestList) {
  RowRecord record;
  record.recorded = record.independent = true;
  record.lists = record.own_length = {"list"};
  model_.Declare({"list", "list/length"}, {"mean"}, {}, record);
  const std::string lists = FloatInput("list", {3, 2}, {1, 3, 2, 4, 4, 6});
  EXPECT_THAT(RunBySlices(lists + Int64Input("list/length", {2, 2, 2}), 1), ElementsAre(2, 3, 5));
  // over[i] is a row's sum divided by the longest list of its run.
  model_.Declare({"list", "list/length"}, {"over"}, {}, record);
  const std::string lengths = Int64Input("list/length", {1, 2, 0});
  const std::string shorter = FloatInput("list", {3, 2}, {1, 0, 2, 4, 0, 0});
  EXPECT_THAT(RunBySlices(shorter + lengths, 1), ElementsAre(0.5, 3, 0));
  EXPECT_THAT(RunBySlices(shorter + lengths, 2), ElementsAre(0.5, 3, 0));
  rules_.allowed_batch_sizes = {1, 2};  // no row can be added
  EXPECT_THAT(RunBySlices(shorter + lengths, 1), ElementsAre());
}

TEST_F(SlicedRequestTest, OutputsWithoutOneRowPerCandidateAreNotJoined) {
  BatchRules any;
  any.any_signature = true;
  for (const char* output : {"whole", "total"}) {
    model_.Declare({"item"}, {output});
    RunBySlices(FloatInput("item", {4}, {1, 2, 3, 4}), 2);
    EXPECT_EQ(status_.code, StatusCode::kFailedPrecondition) << output;
    EXPECT_THAT(status_.message, testing::HasSubstr(output));
    EXPECT_FALSE(CanBeSplit(any));
  }
}

TEST_F(SlicedRequestTest, AFailedSliceFailsTheRequest) {
  model_.Declare({"item"}, {"checked"});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  RunBySlices(FloatInput("item", {4}, {1, 2, nan, 4}), 2);
  EXPECT_EQ(status_.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(status_.message, testing::HasSubstr("a bad row"));
}

}  // namespace
}  // namespace colcast::engine
