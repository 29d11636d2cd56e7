#include "server/engine/program/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using ::testing::HasSubstr;
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
    RunResult result;
    return RunRequest(model_.programs(), message, &result);
  }

  RequestProfile Profile(const BatchRules& rules) {
    return SentPlan(model_.programs(), user_ + items_, &rules).plan->profile;
  }
  bool CanBeJoined(const BatchRules& rules) { return Profile(rules).group != 0; }
  bool CanBeSplit(const BatchRules& rules) { return Profile(rules).can_be_split; }

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

TEST_F(ProgramsTest, ProgramsThatRanAreCounted) {
  EXPECT_TRUE(Run(user_ + items_).ok());
  EXPECT_TRUE(Run(user_ + items_).ok());
  EXPECT_THAT(Counts(), ElementsAre(Counted("whole", "ok", 2)));
}

TEST_F(ProgramsTest, InvalidRequestsAreNotCounted) {
  EXPECT_THAT(std::string(Run(user_).message()), HasSubstr("\"item\" is missing"));
  EXPECT_THAT(std::string(Run(user_ + items_ + BytesField(3, "other")).message()),
              HasSubstr("not found in signature: other"));
  EXPECT_THAT(Counts(), IsEmpty());
}

TEST_F(ProgramsTest, RecordsAndRulesDecideOnJoiningAndSplitting) {
  BatchRules unasked;
  BatchRules any;
  any.any_signature = true;
  const auto declare = [this](const RowRecord& record) {
    model_.Declare({"user", "item"}, {"score"}, {}, record);
  };
  declare({});  // without a record
  EXPECT_FALSE(CanBeJoined(unasked));
  EXPECT_FALSE(CanBeSplit(unasked));
  EXPECT_TRUE(CanBeJoined(any));
  EXPECT_TRUE(CanBeSplit(any));
  declare(Record(/*independent=*/false));
  EXPECT_FALSE(CanBeJoined(any));
  EXPECT_FALSE(CanBeSplit(any));
  declare(Record(/*independent=*/true));
  EXPECT_FALSE(CanBeSplit(unasked));  // splitting would change the last bits
  EXPECT_TRUE(CanBeSplit(any));
  declare(Record(/*independent=*/true, /*any_rounding=*/true));
  EXPECT_TRUE(CanBeSplit(unasked));
}

TEST_F(ProgramsTest, NeverJoinStopsJoiningAndSplitting) {
  BatchRules any;
  any.any_signature = true;
  ASSERT_TRUE(CanBeJoined(any));
  model_.programs().NeverJoin();
  EXPECT_FALSE(CanBeJoined(any));
  EXPECT_FALSE(CanBeSplit(any));
}

TEST_F(ProgramsTest, ProfilesCountInputBytesAfterRepetition) {
  const RequestProfile profile = Profile(BatchRules());
  EXPECT_EQ(profile.rows, 2);
  constexpr int64_t kOfARow = 16;
  EXPECT_EQ(profile.input_bytes, 2 * 2 * sizeof(float) + 2 * kOfARow);
}

TEST(RequestPlanTest, AThreadReusesAReleasedPlan) {
  auto first = RequestPlan::New();
  const RequestPlan* const address = first.get();
  first->batch.domains.resize(2);
  first.reset();
  const auto second = RequestPlan::New();
  EXPECT_EQ(second.get(), address);
  EXPECT_TRUE(second->batch.domains.empty());
}

TEST(RequestPlanTest, AnotherThreadMayReleasePlans) {
  std::vector<std::unique_ptr<RequestPlan, ReleasePlan>> plans;
  for (int i = 0; i < 100; ++i) plans.push_back(RequestPlan::New());
  std::thread([&plans] { plans.clear(); }).join();  // a sanitizer would report leaks
}

}  // namespace
}  // namespace colcast::engine
