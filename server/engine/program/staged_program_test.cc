#include "server/engine/program/staged_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/engine/program/make_programs.h"
#include "server/engine/program/testing.h"
#include "server/states/state_cache.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One user, and one shop for both candidates.
const std::string kRequest =
    MessageOf({{"user", {2}}, {"item", {3, 4}}, {"shop", {1}}, {"candidate", {100, 200}}});

TEST(StagedProgramTest, StagesScoreLikeTheWholeModel) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(kRequest), ElementsAre(1123, 1224));
  EXPECT_THAT(model.Ran(), ElementsAre("stages ok 1"));
  EXPECT_EQ(model.Scores(kRequest, "columnar"), model.Scores(kRequest));
}

TEST(StagedProgramTest, WithoutCachesOnlyRequestsWithSeveralUsersRunAsStages) {
  StagedModel::Settings settings;
  settings.state_bytes = 0;
  const StagedModel model(settings);
  EXPECT_THAT(model.Scores(kRequest), ElementsAre(1123, 1224));
  EXPECT_THAT(model.Ran(), ElementsAre("whole ok 1"));
  const std::string two_users = MessageOf(
      {{"user", {2, 5}}, {"item", {3, 4}}, {"shop", {1}}, {"candidate", {100, 200}}}, {1, 0});
  EXPECT_THAT(model.Scores(two_users), ElementsAre(1153, 1224));
  EXPECT_THAT(model.Ran(), ElementsAre("stages ok 1", "whole ok 1"));
}

TEST(StagedProgramTest, AFailedStageIsCountedAndTheWholeModelAnswers) {
  const StagedModel model({});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string request =
      MessageOf({{"user", {nan}}, {"item", {3}}, {"shop", {1}}, {"candidate", {0}}});
  EXPECT_TRUE(std::isnan(model.Scores(request)[0]));
  EXPECT_THAT(model.Ran(), ElementsAre("stages failed 1", "whole ok 1"));
}

TEST(StagedProgramTest, ALastStageForOneUserRunsOncePerUser) {
  StagedModel::Settings settings;
  settings.many_users_per_run = false;
  const StagedModel model(settings);
  const std::string request =
      MessageOf({{"user", {2, 5, 7}}, {"item", {3, 4, 5}}, {"shop", {1, 2, 3}}, {"candidate", {0}}},
                {2, 0, 2});
  EXPECT_THAT(model.Scores(request), ElementsAre(1073, 2024, 3075));
  EXPECT_THAT(model.Ran(), ElementsAre("stages ok 1"));
  EXPECT_FALSE(model.programs().stages()->computes_users_once());
}

TEST(StagedProgramTest, StatesOfUsersWithoutCandidatesAreComputed) {
  const StagedModel model({});
  DecodedRequest request;
  const std::string message =
      MessageOf({{"user", {2, 5}}, {"item", {}}, {"shop", {}}, {"candidate", {}}}) +
      Int64Input("row_to_user", {});
  EXPECT_THAT(model.Scores(message), IsEmpty());
  EXPECT_EQ(model.Store("user").computed, 2);  // cached for requests with candidates
}

using ::testing::HasSubstr;

TEST(StagedLookupTest, OnlyMissingRowsAreComputed) {
  const StagedModel model({});
  model.Scores(MessageOf({{"user", {2}}, {"item", {3, 4}}, {"shop", {1}}, {"candidate", {0}}}));
  EXPECT_THAT(model.Scores(MessageOf(
                  {{"user", {2}}, {"item", {4, 9, 3}}, {"shop", {2}}, {"candidate", {0, 0, 0}}})),
              ElementsAre(2024, 2029, 2023));
  EXPECT_EQ(model.Store("item").computed, 3);
  EXPECT_EQ(model.Store("item").found, 2);
  EXPECT_EQ(model.Store("user").found, 1);
  EXPECT_EQ(model.Store("shop").computed, 2);
}

TEST(StagedLookupTest, RepeatedShopsAreComputedOnce) {
  const StagedModel model({});
  EXPECT_THAT(
      model.Scores(MessageOf(
          {{"user", {1}}, {"item", {1, 2, 3, 4}}, {"shop", {7, 8, 7, 8}}, {"candidate", {0}}})),
      ElementsAre(7011, 8012, 7013, 8014));
  EXPECT_EQ(model.Store("shop").computed, 2);
}

TEST(StagedLookupTest, ItemsThatSeveralUsersShareAreComputedOnce) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(MessageOf(
                  {{"user", {1, 2}}, {"item", {5, 6, 5, 6}}, {"shop", {0}}, {"candidate", {0}}},
                  {0, 0, 1, 1})),
              ElementsAre(15, 16, 25, 26));
  EXPECT_EQ(model.Store("item").computed, 2);
}

TEST(StagedLookupTest, CandidatesReadShopsByIndex) {
  const StagedModel model({});
  const std::string request =
      MessageOf({{"user", {1}}, {"item", {1, 2, 3}}, {"shop", {7, 8}}, {"candidate", {0}}}) +
      Int64Input("row_to_shop", {1, 0, 1});
  EXPECT_THAT(model.Scores(request), ElementsAre(8011, 7012, 8013));
  EXPECT_EQ(model.Store("shop").computed, 2);
  EXPECT_EQ(model.Store("user").computed, 1);
}

TEST(StagedLookupTest, UsersThatNeverRepeatSoonStopBeingCached) {
  const StagedModel model({});
  const auto ask = [&](float user) {
    return model.Scores(
        MessageOf({{"user", {user}}, {"item", {1}}, {"shop", {0}}, {"candidate", {0}}}));
  };
  for (int user = 0; user < 100; ++user) EXPECT_THAT(ask(user), ElementsAre(10 * user + 1));
  EXPECT_LT(model.Store("user").states, 50);
}

TEST(StagedPrefetchTest, APrefetchedUserIsCached) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(MessageOf({{"user", {2}}})), IsEmpty());
  EXPECT_EQ(model.Store("user").computed, 1);
  EXPECT_EQ(model.Store("item").computed, 0);
  model.Scores(MessageOf({{"user", {2}}, {"item", {3}}, {"shop", {1}}, {"candidate", {0}}}));
  EXPECT_EQ(model.Store("user").computed, 1);
  EXPECT_EQ(model.Store("user").found, 1);
}

TEST(StagedPrefetchTest, APrefetchMustHaveOneUserAndMayHaveEmptyCandidateColumns) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(MessageOf({{"user", {2}}, {"item", {}}, {"shop", {}}})), IsEmpty());
  EXPECT_EQ(model.Store("user").computed, 1);
  std::vector<float> scores;
  const absl::Status status = model.Run(MessageOf({{"user", {2, 3}}}), &scores);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 2 users; expected 1"));
}

TEST(StagedPrefetchTest, ARequestWithAnUnknownInputIsNotAPrefetch) {
  const StagedModel model({});
  std::vector<float> scores;
  const absl::Status status = model.Run(MessageOf({{"user", {2}}, {"other", {1}}}), &scores);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"other\" is not in the signature"));
}

TEST(StagedPrefetchTest, WithoutACacheAPrefetchComputesNothing) {
  StagedModel::Settings settings;
  settings.state_bytes = 0;
  const StagedModel model(settings);
  EXPECT_THAT(model.Scores(MessageOf({{"user", {2}}})), IsEmpty());
  EXPECT_EQ(model.Store("user").computed, 0);
}

StagedModel Without(const std::string& signature) {
  StagedModel::Settings settings;
  settings.left_out = signature;
  return StagedModel(settings);
}

TEST(MakeProgramsTest, ALateSignatureHasTheStagesThatTheRecordNames) {
  const StagedModel model({});
  ASSERT_NE(model.programs().stages(), nullptr);
  EXPECT_TRUE(model.programs().stages()->computes_users_once());
  EXPECT_TRUE(model.programs().domains().take_index());
  EXPECT_EQ(model.programs("columnar").stages(), nullptr);
  EXPECT_EQ(model.programs("columnar_user").stages(), nullptr);
}

TEST(MakeProgramsTest, ALateSignatureRunsWholeIfAStageIsMissing) {
  for (const char* const stage : {"columnar_user", "columnar_shop", "columnar_pair"}) {
    const StagedModel model = Without(stage);
    EXPECT_EQ(model.programs().stages(), nullptr) << stage;
    EXPECT_THAT(model.Scores(kRequest), ElementsAre(1123, 1224)) << stage;
    EXPECT_THAT(model.Ran(), ElementsAre("whole ok 1")) << stage;
  }
}

TEST(MakeProgramsTest, ThereAreNoStagesIfADomainsRowsAreNotIndependent) {
  StagedModel::Settings settings;
  settings.independent = false;
  const StagedModel model(settings);
  EXPECT_EQ(model.programs().stages(), nullptr);
  EXPECT_TRUE(model.programs().stores().empty());
}

TEST(MakeProgramsTest, RequestsCannotHaveAnIndexWithoutColumnar) {
  const StagedModel model = Without("columnar");
  EXPECT_FALSE(model.programs().domains().take_index());
  EXPECT_THAT(model.Scores(kRequest), ElementsAre(1123, 1224));
  EXPECT_THAT(model.Ran(), ElementsAre("stages ok 1"));
}

}  // namespace
}  // namespace colcast::engine
