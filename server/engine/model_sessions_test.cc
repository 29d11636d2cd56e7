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

TEST(SessionStateIn, VariablesAndNamedTablesAreFoundByEverySession) {
  EXPECT_EQ(*SessionStateIn(Of("VarHandleOp", "table")), "");
  EXPECT_EQ(*SessionStateIn(Of("HashTableV2", "words")), "");
  EXPECT_EQ(*SessionStateIn(Of("AssignAddVariableOp")), "");
  EXPECT_EQ(*SessionStateIn(Of("MatMul")), "");
}

TEST(SessionStateIn, ATableWithoutANameAndARandomGeneratorAreTheirSessionsOwn) {
  EXPECT_EQ(*SessionStateIn(Of("HashTableV2")), "HashTableV2 node");
  EXPECT_EQ(*SessionStateIn(Of("RandomUniform")), "RandomUniform node");
  EXPECT_EQ(*SessionStateIn(Of("MutableHashTableV2", "counts")), "MutableHashTableV2 node");
}

TEST(SessionStateIn, AFunctionIsNoUnknownOp) {
  tensorflow::GraphDef graph = Of("called");
  graph.mutable_library()->add_function()->mutable_signature()->set_name("called");
  EXPECT_EQ(*SessionStateIn(graph), "");
}

TEST(SessionStateIn, AnOpThatIsNotRegisteredIsNamed) {
  const absl::Status status = SessionStateIn(Of("NobodyHasThis")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("NobodyHasThis"), std::string::npos);
}

}  // namespace
}  // namespace colcast::engine
