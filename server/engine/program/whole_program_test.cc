#include "server/engine/program/whole_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

TEST(WholeProgramTest, ColumnsOfOneRowAreRepeated) {
  const ScoreModel model;
  WholeProgram program(&model.programs().signature());
  DecodedRequest request;
  const std::string message = FloatInput("user", {1}, {2}) + FloatInput("item", {3}, {1, 2, 3});
  ASSERT_TRUE(DecodePredictRequest(Bytes(message), &request).ok());
  const auto plan = RequestPlan::New();
  ASSERT_TRUE(model.programs().Plan(request, plan.get()).ok());
  RunResult result;
  ASSERT_TRUE(*program.Run(plan->batch, &result));
  const auto scores = result.tensors[0].flat<float>();
  EXPECT_THAT(std::vector<float>(scores.data(), scores.data() + 3), ElementsAre(21, 22, 23));
}

TEST(WholeProgramTest, AcceptsOnlyRowsOfCandidates) {
  const ScoreModel model;
  const WholeProgram program(&model.programs().signature());
  Batch batch;
  EXPECT_TRUE(program.Accepts(batch));
  for (const auto form : {Batch::Form::kOneUser, Batch::Form::kIndexed, Batch::Form::kPrefetch}) {
    batch.form = form;
    EXPECT_FALSE(program.Accepts(batch));
  }
  batch.form = Batch::Form::kRows;
  const std::vector<tensorflow::Tensor> states;
  batch.user_states = &states;
  EXPECT_FALSE(program.Accepts(batch));
}

}  // namespace
}  // namespace colcast::engine
