#include "server/engine/rewrites/table_readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/engine/rewrites/lookup_testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using TableReadersTest = LookupGraphTest;

TEST_F(TableReadersTest, ReadersAreFound) {
  const SignatureDef joined = Fetching("joined"), read = Fetching("read");
  const TablesRead before = ReadBy(Original(), joined), after = ReadBy(Rounded(), joined);
  EXPECT_THAT(before.float32, ElementsAre("table"));
  EXPECT_THAT(before.rounded, ElementsAre());
  EXPECT_THAT(after.float32, ElementsAre());
  EXPECT_THAT(after.rounded, ElementsAre(Pair("table", tensorflow::DT_INT8)));
  EXPECT_THAT(TablesOnlyLookedUp(Original(), {joined}), ElementsAre("table"));
}

TEST_F(TableReadersTest, AVariableThatASignatureMayChangeIsNotReadRounded) {
  for (const char* const change : {"assign", "add", "scatter"}) {
    GraphDef graph = Original();
    tensorflow::NodeDef* const changed = graph.add_node();
    changed->set_name("changed");
    changed->set_op("Identity");
    changed->add_input("id");
    changed->add_input(std::string("^") + change);
    (*changed->mutable_attr())["T"].set_type(tensorflow::DT_INT64);
    EXPECT_THAT(TablesOnlyLookedUp(graph, {Fetching("joined"), Fetching("changed")}),
                ElementsAre());
  }
}

TEST_F(TableReadersTest, WhatAFunctionHoldsIsNotDropped) {
  GraphDef graph = Original();
  tensorflow::NodeDef* const held = graph.mutable_library()->add_function()->add_node_def();
  held->set_name("handle");
  held->set_op("VarHandleOp");
  (*held->mutable_attr())["shared_name"].set_s("of_the_function_alone");
  EXPECT_THAT(VariablesOf(graph), ElementsAre("table"));
  (*held->mutable_attr())["shared_name"].set_s("table");
  EXPECT_THAT(VariablesOf(graph), ElementsAre());
}

TEST_F(TableReadersTest, WhatIsReadInAnotherWayIsNotOnlyLookedUp) {
  const auto read = ops::ReadVariableOp(scope_, table_, tensorflow::DT_FLOAT);
  ops::Sum(scope_.WithOpName("total"), read, 0);
  EXPECT_THAT(TablesOnlyLookedUp(Original(), {Fetching("joined"), Fetching("total")}),
              ElementsAre());
}

}  // namespace
}  // namespace colcast::engine
