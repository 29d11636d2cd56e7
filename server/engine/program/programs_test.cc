#include "server/engine/program/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Counted = std::tuple<std::string, std::string, int64_t>;  // program, outcome, times

RowRecord Record(bool independent, bool any_rounding = false) {
  RowRecord record;
  record.recorded = true;
  record.independent = independent;
  record.any_rounding = any_rounding;
  return record;
}

class ProgramsTest : public ::testing::Test {
 protected:
  absl::Status Run(const std::string& message) {
    DecodedRequest request;
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
    RunResult result;
    return model_.programs().Run(request, &result);
  }

  absl::Status Check(const std::string& message) {
    DecodedRequest request;
    EXPECT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
    return model_.programs().Check(request);
  }

  std::vector<Counted> Counts() {
    std::vector<Counted> counts;
    for (const ProgramStats& stats : model_.programs().counts()) {
      counts.emplace_back(stats.program, stats.outcome, stats.count);
    }
    return counts;
  }

  ScoreModel model_;
  const std::string user_ = FloatInput("user", {1}, {1});
  const std::string items_ = FloatInput("item", {2}, {1, 2});
};

TEST_F(ProgramsTest, WhatRanIsCounted) {
  EXPECT_TRUE(Run(user_ + items_).ok());
  EXPECT_TRUE(Run(user_ + items_).ok());
  EXPECT_THAT(Counts(), ElementsAre(Counted("whole", "ok", 2)));
}

TEST_F(ProgramsTest, WhatIsWrongWithARequestIsNoFailureOfAProgram) {
  EXPECT_THAT(std::string(Run(user_).message()), HasSubstr("\"item\" is missing"));
  EXPECT_THAT(std::string(Run(user_ + items_ + BytesField(3, "other")).message()),
              HasSubstr("not found in signature: other"));
  EXPECT_THAT(Counts(), IsEmpty());
}

TEST_F(ProgramsTest, ACheckSaysWhatARunWouldAndRunsNothing) {
  EXPECT_TRUE(Check(user_ + items_).ok());
  EXPECT_EQ(Check(user_), Run(user_));
  EXPECT_THAT(Counts(), IsEmpty());
}

TEST_F(ProgramsTest, OnlyTheRecordSaysWhetherRowsMayRunWithOthers) {
  BatchRules unasked;
  BatchRules any;
  any.any_signature = true;
  const auto declare = [this](const RowRecord& record) {
    model_.Declare({"user", "item"}, {"score"}, {}, record);
  };
  declare({});  // nothing is known
  EXPECT_FALSE(model_.programs().CanBeJoined(unasked, {0}));
  EXPECT_FALSE(model_.programs().CanBeSplit(unasked, {0}));
  EXPECT_TRUE(model_.programs().CanBeJoined(any, {0}));
  EXPECT_TRUE(model_.programs().CanBeSplit(any, {0}));
  declare(Record(/*independent=*/false));
  EXPECT_FALSE(model_.programs().CanBeJoined(any, {0}));
  EXPECT_FALSE(model_.programs().CanBeSplit(any, {0}));
  declare(Record(/*independent=*/true));
  EXPECT_FALSE(model_.programs().CanBeSplit(unasked, {0}));  // the last bits would change
  EXPECT_TRUE(model_.programs().CanBeSplit(any, {0}));
  declare(Record(/*independent=*/true, /*any_rounding=*/true));
  EXPECT_TRUE(model_.programs().CanBeSplit(unasked, {0}));
}

TEST_F(ProgramsTest, WhatWasFoundToFailTogetherRunsAlone) {
  BatchRules any;
  any.any_signature = true;
  ASSERT_TRUE(model_.programs().CanBeJoined(any, {0}));
  model_.programs().NeverJoin();
  EXPECT_FALSE(model_.programs().CanBeJoined(any, {0}));
  EXPECT_FALSE(model_.programs().CanBeSplit(any, {0}));
}

}  // namespace
}  // namespace colcast::engine
