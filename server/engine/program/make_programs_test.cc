#include "server/engine/program/make_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/engine/program/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

const std::string kRequest =
    MessageOf({{"user", {2}}, {"item", {3}}, {"shop", {1}}, {"candidate", {0}}});

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

TEST(MakeProgramsTest, WithoutOneOfTheStagesTheLateSignatureRunsWhole) {
  for (const char* const stage : {"columnar_user", "columnar_shop", "columnar_pair"}) {
    const StagedModel model = Without(stage);
    EXPECT_EQ(model.programs().stages(), nullptr) << stage;
    EXPECT_THAT(model.Scores(kRequest), ElementsAre(1023)) << stage;
    EXPECT_THAT(model.Ran(), ElementsAre("whole ok 1")) << stage;
  }
}

TEST(MakeProgramsTest, ADomainWhoseRowsDependOnEachOtherHasNoStage) {
  StagedModel::Settings settings;
  settings.independent = false;
  const StagedModel model(settings);
  EXPECT_EQ(model.programs().stages(), nullptr);
  EXPECT_TRUE(model.programs().stores().empty());
}

TEST(MakeProgramsTest, WithoutColumnarARequestHasOneUser) {
  const StagedModel model = Without("columnar");
  EXPECT_FALSE(model.programs().domains().take_index());
  EXPECT_THAT(model.Scores(kRequest), ElementsAre(1023));
  EXPECT_THAT(model.Ran(), ElementsAre("stages ok 1"));
}

}  // namespace
}  // namespace colcast::engine
