#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/program/staged_program.h"
#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"

namespace colcast::engine {
namespace {

using tensorflow::Tensor;
using ::testing::ElementsAre;

// A stage that outputs, for each candidate, its user's user_state/row or user_state/0.
class LastStageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto number = [&](const std::string& name) {
      return ops::Placeholder(scope.WithOpName(name), tensorflow::DT_INT64);
    };
    const auto state = number("state");
    const auto row = number("row");
    number("item");
    const auto row_to_user = number("row_to_user");
    ops::GatherV2(scope.WithOpName("state_of_user"), state, row_to_user, 0);
    ops::GatherV2(scope.WithOpName("row_of_user"), row, row_to_user, 0);
    session_ = SessionOf(scope);
  }

  LastStage Stage(bool numbered) {
    tensorflow::SignatureDef signature;
    const auto declare = [](const std::string& name, tensorflow::TensorInfo* info) {
      *info = Info(name);
      info->set_dtype(tensorflow::DT_INT64);
    };
    auto& inputs = *signature.mutable_inputs();
    declare("item", &inputs["item_state/0"]);
    declare("row_to_user", &inputs["row_to_user"]);
    declare("state", &inputs["user_state/0"]);
    if (numbered) declare("row", &inputs["user_state/row"]);
    declare(numbered ? "row_of_user" : "state_of_user", &(*signature.mutable_outputs())["out"]);
    runner_ = *Signature::Create(signature, session_.get(), {});
    LastStage stage(runner_.get());
    const SignatureInputs late = *SignatureInputs::Create(tensorflow::SignatureDef());
    std::vector<int> context;
    EXPECT_TRUE(
        stage.Connect({{"user", {"user_state/0"}}, {"item", {"item_state/0"}}}, late, &context));
    return stage;
  }

  const LastStage::Feeds feeds_{
      {{Ids({70, 80, 90})}, {Ids({1, 2, 3, 4})}}, {Ids({2, 0, 2, 1}), Tensor()}, {}, 4};
  RunResult result_;

 private:
  std::unique_ptr<tensorflow::Session> session_;
  std::unique_ptr<Signature> runner_;
};

TEST_F(LastStageTest, UsersAreNumbered) {
  ASSERT_TRUE(Stage(true).Run(feeds_, {0}, &result_).ok());
  EXPECT_THAT(ElementsOf<int64_t>(result_.tensors[0]), ElementsAre(2, 0, 2, 1));
}

TEST_F(LastStageTest, ASingleUserHasNumber0) {
  ASSERT_TRUE(Stage(true).RunByUser(feeds_, {0}, &result_).ok());
  EXPECT_THAT(ElementsOf<int64_t>(result_.tensors[0]), ElementsAre(0, 0, 0, 0));
}

TEST_F(LastStageTest, AStageWithoutNumbersNeedsNone) {
  ASSERT_TRUE(Stage(false).Run(feeds_, {0}, &result_).ok());
  EXPECT_THAT(ElementsOf<int64_t>(result_.tensors[0]), ElementsAre(90, 70, 90, 80));
}

}  // namespace
}  // namespace colcast::engine
