#include "server/engine/model_sessions.h"

#include <gtest/gtest.h>

#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

tensorflow::GraphDef Of(const std::string& op, const std::string& shared_name = "") {
  tensorflow::GraphDef graph;
  tensorflow::NodeDef* const node = graph.add_node();
  node->set_name("node");
  node->set_op(op);
  if (!shared_name.empty()) tensorflow::AddNodeAttr("shared_name", shared_name, node);
  return graph;
}

TEST(SessionStateIn, VariablesAndNamedTablesAreSharedBetweenSessions) {
  EXPECT_EQ(*SessionStateIn(Of("VarHandleOp", "table")), "");
  EXPECT_EQ(*SessionStateIn(Of("HashTableV2", "words")), "");
  EXPECT_EQ(*SessionStateIn(Of("AssignAddVariableOp")), "");
  EXPECT_EQ(*SessionStateIn(Of("MatMul")), "");
}

TEST(SessionStateIn, UnnamedAndMutableTablesAndRandomGeneratorsAreNotShared) {
  EXPECT_EQ(*SessionStateIn(Of("HashTableV2")), "HashTableV2 node");
  EXPECT_EQ(*SessionStateIn(Of("RandomUniform")), "RandomUniform node");
  EXPECT_EQ(*SessionStateIn(Of("MutableHashTableV2", "counts")), "MutableHashTableV2 node");
}

TEST(SessionStateIn, AFunctionCallIsNotAnUnknownOp) {
  tensorflow::GraphDef graph = Of("called");
  graph.mutable_library()->add_function()->mutable_signature()->set_name("called");
  EXPECT_EQ(*SessionStateIn(graph), "");
}

TEST(SessionStateIn, ErrorsNameTheUnregisteredOp) {
  const absl::Status status = SessionStateIn(Of("NobodyHasThis")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("NobodyHasThis"), std::string::npos);
}

TEST(HasConditions, LoweredConditionsAreFoundInTheGraphAndItsFunctions) {
  EXPECT_FALSE(HasConditions(Of("MatMul")));
  tensorflow::GraphDef branch = Of("StatelessIf");
  EXPECT_FALSE(HasConditions(branch));
  tensorflow::AddNodeAttr("_lower_using_switch_merge", true, branch.mutable_node(0));
  EXPECT_TRUE(HasConditions(branch));
  tensorflow::GraphDef calls = Of("called");
  tensorflow::FunctionDef* const function = calls.mutable_library()->add_function();
  function->mutable_signature()->set_name("called");
  EXPECT_FALSE(HasConditions(calls));
  *function->add_node_def() = branch.node(0);
  EXPECT_TRUE(HasConditions(calls));
}

TEST(ModelSessions, ACheckpointWithoutItsIndexIsRefused) {
  tensorflow::MetaGraphDef saved;
  *saved.mutable_graph_def() = Of("VarHandleOp");
  saved.mutable_saver_def()->set_restore_op_name("node");
  const Options options;
  const absl::Status status =
      ModelSessions::Restore(::testing::TempDir(), saved, NeededGraphs(saved.graph_def()), options,
                             /*shared=*/false, /*maps=*/false)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("variables/variables.index"), std::string::npos);
}

}  // namespace
}  // namespace colcast::engine
