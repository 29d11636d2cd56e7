#include "server/engine/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/testing.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A SavedModel with score = 10 * user + item and doubled = 2 * item, which share the input item.
class ModelRunsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    namespace ops = tensorflow::ops;
    const tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
    const auto user = ops::Placeholder(scope.WithOpName("user"), tensorflow::DT_FLOAT);
    const auto item = ops::Placeholder(scope.WithOpName("item"), tensorflow::DT_FLOAT);
    // Stack does not broadcast, so a user that is sent once must be repeated.
    const auto both =
        ops::Stack(scope, {ops::Multiply(scope, user, 10.0f).z, tensorflow::Output(item)},
                   ops::Stack::Axis(1));
    ops::Sum(scope.WithOpName("score"), both, 1);
    ops::Multiply(scope.WithOpName("doubled"), item, 2.0f);
    ops::Identity(scope.WithOpName("copy"), item);
    tensorflow::SavedModel saved;
    tensorflow::MetaGraphDef& graph = *saved.add_meta_graphs();
    graph.mutable_meta_info_def()->add_tags("serve");
    TF_CHECK_OK(scope.ToGraphDef(graph.mutable_graph_def()));
    auto& signatures = *graph.mutable_signature_def();
    Declare({"user", "item"}, "score", &signatures["scores"]);
    Declare({"item"}, "doubled", &signatures["serving_default"]);
    Declare({"item"}, "copy", &signatures["same"]);
    const std::string directory = ::testing::TempDir() + "/model_runs_test";
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/saved_model.pb") << saved.SerializeAsString();
    auto loaded = TensorFlowModel::Load(directory, {"serve"}, {}, std::make_shared<StateCaches>());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model_ = *std::move(loaded);
    rules_.any_signature = true;
  }

  static void Declare(const std::vector<std::string>& inputs, const std::string& output,
                      tensorflow::SignatureDef* signature) {
    for (const std::string& input : inputs) (*signature->mutable_inputs())[input] = Info(input);
    (*signature->mutable_outputs())[output] = Info(output);
  }

  Status Plan(const std::string& signature, const std::string& inputs, PlanPtr* plan) {
    DecodedRequest& request = requests_.emplace_back(inputs).request;
    request.model_spec.signature_name = signature;
    const std::vector<std::string> sorted = {"same", "scores", "serving_default"};
    const auto found = std::find(sorted.begin(), sorted.end(), signature);
    const auto number = found == sorted.end() ? -1 : static_cast<int>(found - sorted.begin());
    return model_->Plan(request, number, rules_, plan);
  }

  PlanPtr Scores(float user, const std::vector<float>& items) {
    PlanPtr plan;
    EXPECT_TRUE(Plan("scores",
                     FloatInput("user", {1}, {user}) + FloatInput("item", {items.size()}, items),
                     &plan)
                    .ok());
    return plan;
  }

  BatchRules rules_;
  std::unique_ptr<TensorFlowModel> model_;
  std::deque<SentRequest> requests_;
};

TEST_F(ModelRunsTest, APlanHasAProfileAndCanRunRepeatedly) {
  const PlanPtr plan = Scores(1, {1, 2, 3});
  EXPECT_EQ(plan->profile.rows, 3);
  EXPECT_TRUE(plan->profile.can_be_split);
  for (int i = 0; i < 2; ++i) {
    std::unique_ptr<Outputs> outputs;
    ASSERT_TRUE(model_->Run(*plan, &outputs).ok());
    EXPECT_THAT(FirstOutput(*outputs), ElementsAre(11, 12, 13));
    EXPECT_EQ(outputs->expansion().columns_sent_once, 1);
  }
}

TEST_F(ModelRunsTest, PlanReportsErrorsInARequest) {
  PlanPtr plan;
  const Status missing = Plan("scores", FloatInput("item", {1}, {1}), &plan);
  EXPECT_EQ(missing.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(missing.message, HasSubstr("\"user\" is missing"));
  const Status unknown = Plan("other", FloatInput("item", {1}, {1}), &plan);
  EXPECT_EQ(unknown.code, StatusCode::kFailedPrecondition);
  EXPECT_THAT(unknown.message, HasSubstr("the model has {same, scores, serving_default}"));
  EXPECT_EQ(plan, nullptr);
}

TEST_F(ModelRunsTest, RequestsOfOneGroupRunTogether) {
  const PlanPtr first = Scores(1, {1, 2});
  const PlanPtr second = Scores(2, {3});
  PlanPtr other;
  ASSERT_TRUE(Plan("serving_default", FloatInput("item", {1}, {4}), &other).ok());
  EXPECT_EQ(first->profile.group, second->profile.group);
  EXPECT_NE(first->profile.group, other->profile.group);
  std::vector<BatchMember> members(3);
  members[0].plan = first.get();
  members[1].plan = other.get();
  members[2].plan = second.get();
  model_->Run(&members);
  EXPECT_THAT(FirstOutput(*members[0].outputs), ElementsAre(11, 12));
  EXPECT_THAT(FirstOutput(*members[1].outputs), ElementsAre(8));
  EXPECT_THAT(FirstOutput(*members[2].outputs), ElementsAre(23));
  for (const ProgramStats& stats : model_->stats().programs) EXPECT_EQ(stats.count, 1);
}

}  // namespace
}  // namespace colcast::engine
