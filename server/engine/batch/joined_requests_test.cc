#include "server/engine/batch/joined_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "server/engine/batch/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Request(float user, const std::vector<float>& items) {
  return FloatInput("user", {1}, {user}) + FloatInput("item", {items.size()}, items);
}

class JoinedRequestsTest : public ::testing::Test {
 protected:
  void SetUp() override { rules_.any_signature = true; }

  void Run(const std::vector<std::string>& messages) {
    requests_.clear();
    for (const std::string& message : messages) {
      requests_.emplace_back(model_.programs(), message, &rules_);
    }
    const int64_t ran_before = NumRuns();
    num_alone_ = RunTogether(model_.programs(), requests_, &members_);
    num_joined_ = NumRuns() - ran_before - num_alone_;
  }

  int64_t NumRuns() const {
    int64_t runs = 0;
    for (const ProgramStats& stats : model_.programs().counts()) runs += stats.count;
    return runs;
  }

  std::vector<float> Answer(size_t member) const {
    EXPECT_TRUE(members_[member].status.ok()) << members_[member].status.message;
    if (members_[member].outputs == nullptr) return {};
    return FirstOutput(*members_[member].outputs);
  }

  BatchRules rules_;
  ScoreModel model_;
  std::deque<SentPlan> requests_;
  std::vector<BatchMember> members_;
  int64_t num_joined_ = 0;  // also counts single requests with added rows
  int num_alone_ = 0;
};

TEST_F(JoinedRequestsTest, JoinedRequestsGetTheirRows) {
  Run({Request(1, {1, 2}), Request(2, {3}), Request(3, {4, 5, 6})});
  EXPECT_EQ(num_joined_, 1);
  EXPECT_EQ(num_alone_, 0);
  EXPECT_THAT(Answer(0), ElementsAre(11, 12));
  EXPECT_THAT(Answer(1), ElementsAre(23));
  EXPECT_THAT(Answer(2), ElementsAre(34, 35, 36));
  EXPECT_EQ(members_[2].outputs->expansion().rows, 3);
  EXPECT_EQ(members_[2].outputs->expansion().columns_sent_once, 1);
}

TEST_F(JoinedRequestsTest, AnInvalidRequestFailsAloneWithItsOwnError) {
  const std::string wrong = FloatInput("user", {2}, {1, 2}) + FloatInput("item", {3}, {1, 2, 3});
  Run({Request(1, {1}), wrong, Request(2, {2}), FloatInput("item", {1}, {1})});
  EXPECT_EQ(num_joined_, 1);
  EXPECT_THAT(Answer(0), ElementsAre(11));
  EXPECT_THAT(Answer(2), ElementsAre(22));
  EXPECT_EQ(members_[1].status.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(members_[1].status.message, HasSubstr("input \"user\" has 2 rows"));
  EXPECT_THAT(members_[3].status.message, HasSubstr("input \"user\" is missing"));
}

TEST_F(JoinedRequestsTest, RequestsRunAloneAfterAFailedJoinedRun) {
  Options small;
  small.max_request_rows = 3;
  model_.Declare({"user", "item"}, {"score"}, small);
  Run({Request(1, {1, 2}), Request(2, {3, 4}), Request(2, {1, 2, 3, 4})});
  EXPECT_EQ(num_alone_, 2);
  EXPECT_THAT(Answer(0), ElementsAre(11, 12));
  EXPECT_THAT(Answer(1), ElementsAre(23, 24));
  EXPECT_EQ(members_[2].status.code, StatusCode::kResourceExhausted);
}

TEST_F(JoinedRequestsTest, ListsOfDifferentLengthsRunSeparatelyUnlessPadded) {
  model_.Declare({"list"}, {"sum"});
  const std::vector<std::string> requests = {FloatInput("list", {1, 2}, {1, 2}),
                                             FloatInput("list", {2, 1}, {5, 6}),
                                             FloatInput("list", {1, 2}, {3, 4})};
  Run(requests);
  EXPECT_EQ(num_joined_, 1);
  EXPECT_THAT(Answer(0), ElementsAre(3));
  EXPECT_THAT(Answer(1), ElementsAre(5, 6));
  EXPECT_THAT(Answer(2), ElementsAre(7));
  rules_.pad_variable_length_inputs = true;
  Run(requests);
  EXPECT_EQ(num_joined_, 1);
  // Pads with the tensor's first value, as TF Serving does.
  EXPECT_THAT(Answer(1), ElementsAre(10, 11));
}

TEST_F(JoinedRequestsTest, ARecordedSignatureDoesNotPadListsWithoutLengths) {
  RowRecord record;
  record.recorded = record.independent = true;
  model_.Declare({"list"}, {"mean"}, {}, record);
  rules_.pad_variable_length_inputs = true;
  Run({FloatInput("list", {1, 2}, {1, 2}), FloatInput("list", {1, 1}, {5})});
  EXPECT_EQ(num_alone_, 2);
  EXPECT_THAT(Answer(1), ElementsAre(5));
}

TEST_F(JoinedRequestsTest, RequestsBeyondTheMemoryLimitRunSeparately) {
  rules_.pad_variable_length_inputs = true;
  const std::vector<std::string> requests = {
      FloatInput("list", {1, 500}, std::vector<float>(500, 1)),
      FloatInput("list", {499, 1}, std::vector<float>(499, 2))};
  Options options;
  options.max_expanded_bytes = 990 * 1000;  // stacked floats take 500 * 500 * 4 bytes
  model_.Declare({"list"}, {"sum"}, options);
  Run(requests);
  EXPECT_EQ(num_joined_, 0);
  EXPECT_EQ(num_alone_, 2);
  EXPECT_THAT(Answer(0), ElementsAre(500));
  options.max_expanded_bytes = 1000 * 1000;
  model_.Declare({"list"}, {"sum"}, options);
  Run(requests);
  EXPECT_EQ(num_joined_, 1);
}

TEST_F(JoinedRequestsTest, RowsAreAddedUpToTheNextAllowedBatchSize) {
  rules_.allowed_batch_sizes = {2, 8};
  Run({Request(1, {1, 2}), Request(2, {3})});
  EXPECT_EQ(num_joined_, 1);
  EXPECT_THAT(Answer(0), ElementsAre(11, 12));
  EXPECT_THAT(Answer(1), ElementsAre(23));
  Run({Request(1, {1, 2, 3})});  // rows are added to a single request, too
  EXPECT_EQ(num_joined_, 1);
  EXPECT_THAT(Answer(0), ElementsAre(11, 12, 13));
  Run({Request(1, {1, 2})});
  EXPECT_EQ(num_joined_, 0);
  rules_.allowed_batch_sizes = {2};
  Run({Request(1, {1, 2}), Request(2, {3})});
  EXPECT_EQ(num_joined_, 1);
}

// A record of independent rows in which the input `list` has lengths.
RowRecord Lists(const std::vector<std::string>& own_length) {
  RowRecord record;
  record.recorded = record.independent = true;
  record.lists = {"list"};
  record.own_length = own_length;
  return record;
}

std::string List(const std::vector<float>& values, int64_t length) {
  return FloatInput("list", {1, values.size()}, values) + Int64Input("list/length", {length});
}

TEST_F(JoinedRequestsTest, OnlyListsWithLengthsArePadded) {
  const std::vector<std::string> requests = {List({1, 2}, 2), List({5}, 1)};
  model_.Declare({"list", "list/length"}, {"sum"});
  Run(requests);
  EXPECT_EQ(num_alone_, 2);
  model_.Declare({"list", "list/length"}, {"sum"}, {}, Lists({}));
  Run(requests);
  EXPECT_EQ(num_joined_, 1);
  EXPECT_THAT(Answer(0), ElementsAre(3));
  EXPECT_THAT(Answer(1), ElementsAre(5));
}

TEST_F(JoinedRequestsTest, ListsWhoseLongestLengthMattersAreJoinedOnlyIfEquallyLong) {
  model_.Declare({"list", "list/length"}, {"sum"}, {}, Lists({"list"}));
  rules_.pad_variable_length_inputs = true;
  Run({List({1, 2}, 2), List({5}, 1), List({3, 4, 0}, 2), List({7, 0}, 1), List({0}, 0)});
  EXPECT_EQ(num_joined_, 2);  // both pairs of lists of equal length
  EXPECT_EQ(num_alone_, 1);
  EXPECT_THAT(Answer(2), ElementsAre(7));
  EXPECT_THAT(Answer(3), ElementsAre(7));
}

TEST_F(JoinedRequestsTest, AListShorterThanItsLengthIsRefusedAlone) {
  model_.Declare({"list", "list/length"}, {"sum"}, {}, Lists({}));
  Run({List({1, 2}, 2), List({5}, 2), List({3, 4}, 1)});
  EXPECT_EQ(num_joined_, 1);
  EXPECT_EQ(num_alone_, 0);
}

TEST_F(JoinedRequestsTest, OutputsWithoutOneRowPerCandidateEndJoining) {
  for (const char* output : {"whole", "total"}) {
    model_.Declare({"item"}, {output});
    Run({FloatInput("item", {1}, {2}), FloatInput("item", {1}, {3})});
    EXPECT_EQ(num_alone_, 2) << output;
    EXPECT_THAT(Answer(0), ElementsAre(2)) << output;
    EXPECT_THAT(Answer(1), ElementsAre(3)) << output;
    EXPECT_FALSE(model_.programs().CanBeJoined(rules_, {0})) << output;
  }
}

TEST_F(JoinedRequestsTest, RequestsWithAnIndexAreNotJoinedWithoutStages) {
  model_.Declare({"user", "item", "row_to_user"}, {"score"});
  EXPECT_FALSE(model_.programs().CanBeJoined(rules_, model_.programs().signature().all_outputs()));
}

TEST_F(JoinedRequestsTest, JoinedAnswersEqualSeparateAnswers) {
  std::mt19937 random(1);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> messages;
    for (int i = below(6); i >= 0; --i) {
      std::vector<float> items(below(8));
      for (float& item : items) item = below(100);
      std::string message = below(4) == 0 ? FloatInput("user", {items.size()}, items)
                                          : FloatInput("user", {1}, {float(below(9))});
      if (below(8) != 0) message += FloatInput("item", {items.size()}, items);
      if (below(12) == 0) message += FloatInput("item", {items.size(), 1}, items);
      if (below(12) == 0) message += FloatInput("other", {1}, {1});
      if (below(6) == 0) message += BytesField(3, below(2) == 0 ? "score" : "scores");
      messages.push_back(message);
    }
    Run(messages);
    for (size_t i = 0; i < messages.size(); ++i) {
      if (!requests_[i].status.ok()) continue;
      BatchMember alone;
      alone.plan = members_[i].plan;
      RunAlone(model_.programs(), &alone);
      ASSERT_EQ(members_[i].status.code, alone.status.code);
      EXPECT_EQ(members_[i].status.message, alone.status.message);
      if (!alone.status.ok()) continue;
      const std::vector<float> joined = Answer(i);
      members_[i].outputs = std::move(alone.outputs);
      EXPECT_EQ(joined, Answer(i));
    }
  }
}

}  // namespace
}  // namespace colcast::engine
