#include "server/engine/scalar_conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/testing.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kGuard[] = "branch/scalar_condition";

// A graph with a node "branch", which reads the placeholder "condition".
GraphDef Branch(const char* op, tensorflow::DataType type, bool lowered = true) {
  GraphDef graph;
  NodeDef* const condition = graph.add_node();
  condition->set_name("condition");
  condition->set_op("Placeholder");
  (*condition->mutable_attr())["dtype"].set_type(type);
  NodeDef* const branch = graph.add_node();
  branch->set_name("branch");
  branch->set_op(op);
  branch->add_input("condition");
  if (op != std::string("Case")) (*branch->mutable_attr())["Tcond"].set_type(type);
  (*branch->mutable_attr())["_lower_using_switch_merge"].set_b(lowered);
  return graph;
}

// The shape of the condition that the branch reads, or the error.
absl::StatusOr<std::string> Guarded(GraphDef graph, const Tensor& condition) {
  RequireScalarConditions(&graph);
  EXPECT_THAT(graph.node(1).input(), ElementsAre(kGuard));
  graph.mutable_node()->DeleteSubrange(1, 1);  // only the guard is run
  const std::unique_ptr<tensorflow::Session> session(tensorflow::NewSession({}));
  TF_CHECK_OK(session->Create(graph));
  std::vector<Tensor> outputs;
  absl::Status status = session->Run({{"condition", condition}}, {kGuard}, {}, &outputs);
  if (!status.ok()) return status;
  return outputs[0].DebugString();
}

TEST(ScalarConditionsTest, AListOfOneValueIsReadAsThatValue) {
  const GraphDef graph = Branch("If", tensorflow::DT_BOOL);
  EXPECT_THAT(*Guarded(graph, AsTensor<bool>({true}, {1})), HasSubstr("shape: [] values: 1"));
  EXPECT_THAT(*Guarded(graph, AsTensor<bool>({false}, {})), HasSubstr("shape: [] values: 0"));
}

TEST(ScalarConditionsTest, SeveralValuesAndNoneAreRefused) {
  const GraphDef graph = Branch("StatelessIf", tensorflow::DT_FLOAT);
  for (const Tensor& condition : {AsTensor<float>({1, 1}, {2}), AsTensor<float>({}, {0})}) {
    const auto guarded = Guarded(graph, condition);
    EXPECT_EQ(guarded.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(guarded.status().message()), HasSubstr("must be a scalar"));
  }
}

TEST(ScalarConditionsTest, ACaseTakesAScalarOnly) {
  const GraphDef graph = Branch("Case", tensorflow::DT_INT32);
  EXPECT_TRUE(Guarded(graph, AsTensor<int32_t>({1}, {})).ok());
  EXPECT_FALSE(Guarded(graph, AsTensor<int32_t>({1}, {1})).ok());
}

TEST(ScalarConditionsTest, ALoopsConditionIsGuardedInItsFunction) {
  GraphDef graph;
  NodeDef* const loop = graph.add_node();
  loop->set_op("StatelessWhile");
  (*loop->mutable_attr())["cond"].mutable_func()->set_name("goes_on");
  (*loop->mutable_attr())["_lower_using_switch_merge"].set_b(true);
  tensorflow::FunctionDef* const function = graph.mutable_library()->add_function();
  function->mutable_signature()->set_name("goes_on");
  function->mutable_signature()->add_output_arg()->set_name("more");
  (*function->mutable_ret())["more"] = "less:z:0";
  RequireScalarConditions(&graph);
  const tensorflow::FunctionDef& guarded = graph.library().function(0);
  EXPECT_EQ(guarded.ret().at("more"), "result/scalar_condition:scalar:0");
  EXPECT_THAT(guarded.node_def(0).input(), ElementsAre("less:z:0"));
}

TEST(ScalarConditionsTest, WhatTensorflowRunsAsItIsStays) {
  GraphDef graph = Branch("If", tensorflow::DT_BOOL, /*lowered=*/false);
  RequireScalarConditions(&graph);
  EXPECT_EQ(graph.node_size(), 2);
  EXPECT_THAT(graph.node(1).input(), ElementsAre("condition"));
}

}  // namespace
}  // namespace colcast::engine
