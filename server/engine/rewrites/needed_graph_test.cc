#include "server/engine/rewrites/needed_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/engine/rewrites/lookup_testing.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class NeededGraphsTest : public ::testing::Test {
 protected:
  tensorflow::NodeDef* Add(const std::string& name, const std::string& op,
                           const std::vector<std::string>& inputs = {}) {
    tensorflow::NodeDef* const node = whole_.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    return node;
  }

  void AddFunction(const std::string& name) {
    whole_.mutable_library()->add_function()->mutable_signature()->set_name(name);
  }

  static std::vector<std::string> NamesOf(const tensorflow::GraphDef& graph) {
    std::vector<std::string> names;
    for (const auto& node : graph.node()) names.push_back(node.name());
    return names;
  }

  tensorflow::GraphDef whole_;
};

TEST_F(NeededGraphsTest, GraphsHaveAncestorsInTheOrderOfTheWholeGraph) {
  Add("x", "Placeholder");
  Add("y", "Placeholder");
  Add("waited", "NoOp");
  Add("both", "AddV2", {"x", "x:0", "^waited"});
  Add("other", "Neg", {"y"});
  const auto graph = NeededGraphs(whole_).Of({"both:0"});
  EXPECT_THAT(NamesOf(*graph), ElementsAre("x", "waited", "both"));
  EXPECT_THAT(NamesOf(*NeededGraphs(whole_).Of({"y:0", "both"})),
              ElementsAre("x", "y", "waited", "both"));
}

TEST_F(NeededGraphsTest, GraphsHaveOnlyTheFunctionsThatTheyCall) {
  AddFunction("called");
  AddFunction("other");
  tensorflow::NameAttrList called;
  called.set_name("called");
  tensorflow::AddNodeAttr("f", called, Add("call", "StatefulPartitionedCall"));
  const NeededGraphs graphs(whole_);
  const auto graph = graphs.Of({"call"});
  ASSERT_EQ(graph->library().function_size(), 1);
  EXPECT_EQ(graph->library().function(0).signature().name(), "called");
  Add("x", "Placeholder");
  EXPECT_THAT(NeededGraphs(whole_).Of({"x"})->library().function(), IsEmpty());
}

TEST_F(NeededGraphsTest, ErrorsNameTheMissingNode) {
  Add("x", "Neg", {"gone"});
  const absl::Status status = NeededGraphs(whole_).Of({"x"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "the model's graph has no node \"gone\"");
}

TEST(TensorsOf, ComponentsOfSparseTensorsAreIncluded) {
  tensorflow::SignatureDef declared;
  (*declared.mutable_inputs())["x"].set_name("x:0");
  auto* const sparse = (*declared.mutable_outputs())["s"].mutable_coo_sparse();
  sparse->set_values_tensor_name("v:0");
  sparse->set_indices_tensor_name("i:0");
  sparse->set_dense_shape_tensor_name("d:0");
  EXPECT_THAT(TensorsOf(declared), UnorderedElementsAre("x:0", "v:0", "i:0", "d:0"));
}

using TableReadersTest = LookupGraphTest;

TEST_F(TableReadersTest, TablesReadAsFloatsAndInInt8AreFound) {
  const SignatureDef joined = Fetching("joined");
  const TablesRead before = ReadBy(Original(), joined), after = ReadBy(InInt8(), joined);
  EXPECT_THAT(before.float32, ElementsAre("table"));
  EXPECT_THAT(before.int8, ElementsAre());
  EXPECT_THAT(after.float32, ElementsAre());
  EXPECT_THAT(after.int8, ElementsAre("table"));
}

TEST_F(TableReadersTest, AVariableWithAHandleInAFunctionIsExcluded) {
  GraphDef graph = Original();
  tensorflow::NodeDef* const held = graph.mutable_library()->add_function()->add_node_def();
  held->set_name("handle");
  held->set_op("VarHandleOp");
  (*held->mutable_attr())["shared_name"].set_s("of_the_function_alone");
  EXPECT_THAT(VariablesOf(graph), ElementsAre("table"));
  (*held->mutable_attr())["shared_name"].set_s("table");
  EXPECT_THAT(VariablesOf(graph), ElementsAre());
}

}  // namespace
}  // namespace colcast::engine
