#include "server/engine/rewrites/table_readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/engine/rewrites/lookup_testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;

using TableReadersTest = LookupGraphTest;

TEST_F(TableReadersTest, ReadersAreFound) {
  const SignatureDef joined = Fetching("joined");
  const TablesRead before = ReadBy(Original(), joined), after = ReadBy(InInt8(), joined);
  EXPECT_THAT(before.float32, ElementsAre("table"));
  EXPECT_THAT(before.int8, ElementsAre());
  EXPECT_THAT(after.float32, ElementsAre());
  EXPECT_THAT(after.int8, ElementsAre("table"));
}

TEST_F(TableReadersTest, AVariableThatAFunctionHoldsDoesNotCount) {
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
