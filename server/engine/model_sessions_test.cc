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

TEST(HasSessionState, VariablesAndNamedTablesAreFoundByEverySession) {
  EXPECT_FALSE(*HasSessionState(Of("VarHandleOp", "table")));
  EXPECT_FALSE(*HasSessionState(Of("HashTableV2", "words")));
  EXPECT_FALSE(*HasSessionState(Of("AssignAddVariableOp")));
  EXPECT_FALSE(*HasSessionState(Of("MatMul")));
}

TEST(HasSessionState, ATableWithoutANameAndARandomGeneratorAreTheirSessionsOwn) {
  EXPECT_TRUE(*HasSessionState(Of("HashTableV2")));
  EXPECT_TRUE(*HasSessionState(Of("RandomUniform")));
  EXPECT_TRUE(*HasSessionState(Of("MutableHashTableV2", "counts")));
}

TEST(HasSessionState, AFunctionIsNoUnknownOp) {
  tensorflow::GraphDef graph = Of("called");
  graph.mutable_library()->add_function()->mutable_signature()->set_name("called");
  EXPECT_FALSE(*HasSessionState(graph));
}

TEST(HasSessionState, AnOpThatIsNotRegisteredIsNamed) {
  const absl::Status status = HasSessionState(Of("NobodyHasThis")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("NobodyHasThis"), std::string::npos);
}

}  // namespace
}  // namespace colcast::engine
