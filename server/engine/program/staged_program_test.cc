#include "server/engine/program/staged_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/engine/program/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One user, the same shop for both candidates.
const std::string kRequest =
    MessageOf({{"user", {2}}, {"item", {3, 4}}, {"shop", {1}}, {"candidate", {100, 200}}});

TEST(StagedProgramTest, ScoresAreThoseOfTheWholeModel) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(kRequest), ElementsAre(1123, 1224));
  EXPECT_THAT(model.Ran(), ElementsAre("stages ok 1"));
  EXPECT_EQ(model.Scores(kRequest, "columnar"), model.Scores(kRequest));
}

TEST(StagedProgramTest, ADomainsColumnsAreSentOnceOrPerCandidate) {
  const StagedModel model({});
  EXPECT_THAT(model.Scores(MessageOf(
                  {{"user", {2}}, {"item", {3, 4}}, {"shop", {1, 2}}, {"candidate", {100}}})),
              ElementsAre(1123, 2124));
  EXPECT_THAT(model.Ran(), ElementsAre("stages ok 1"));
}

TEST(StagedProgramTest, StatesAreNotComputedAgain) {
  const StagedModel model({});
  model.Scores(kRequest);
  EXPECT_THAT(model.Scores(kRequest), ElementsAre(1123, 1224));
  for (const char* const domain : {"user", "item", "shop"}) {
    const int64_t rows = domain == std::string("item") ? 2 : 1;
    EXPECT_EQ(model.Store(domain).computed, rows) << domain;
    EXPECT_EQ(model.Store(domain).found, rows) << domain;
  }
}

TEST(StagedProgramTest, WithoutCachesTheLateModelRunsWholeAndBatchesByStages) {
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

TEST(StagedProgramTest, ALastStageOfOneUserRunsOncePerUser) {
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

TEST(StagedProgramTest, SeveralUsersMayHaveNoCandidates) {
  const StagedModel model({});
  DecodedRequest request;
  const std::string message =
      MessageOf({{"user", {2, 5}}, {"item", {}}, {"shop", {}}, {"candidate", {}}}) +
      Int64Input("row_to_user", {});
  EXPECT_THAT(model.Scores(message), IsEmpty());
  EXPECT_EQ(model.Store("user").computed, 2);  // cached for requests with candidates
}

}  // namespace
}  // namespace colcast::engine
