#include "server/engine/mapping/map_variables.h"

#include <gmock/gmock.h>

#include "server/engine/mapping/testing.h"
#include "tensorflow/cc/ops/state_ops.h"

namespace colcast::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class MapVariablesTest : public MappingTest {
 protected:
  // Of signature "s", which gives rows of `first` and all of `second`.
  MappedVariables Loaded(tensorflow::Session* session, int64_t least_bytes = kBytes) {
    MappedVariables variables(Graph(), {}, least_bytes);
    EXPECT_TRUE(variables.Find(session));
    tensorflow::SignatureDef declared;
    (*declared.mutable_outputs())["rows"].set_name("rows:0");
    (*declared.mutable_outputs())["whole"].set_name("second_value:0");
    graph_ = Served();
    variables.Read("s", declared, &graph_);
    return variables;
  }

  static const ServedTable& Table(const std::vector<ServedTable>& tables, const std::string& name) {
    for (const ServedTable& table : tables) {
      if (table.name == name) return table;
    }
    static const ServedTable none;
    return none;
  }

  tensorflow::GraphDef graph_;
};

TEST_F(MapVariablesTest, WhatIsOnlyLookedUpStaysMappedAndTheRestIsCopied) {
  const auto session = Restored();
  MappedVariables variables = Loaded(session.get());
  ASSERT_TRUE(variables.CopyOthers(session.get()).ok());
  const std::vector<ServedTable> tables = variables.Tables();
  EXPECT_NE(Table(tables, "first").mapped, nullptr);
  EXPECT_EQ(Table(tables, "second").mapped, nullptr);
  EXPECT_THAT(Table(tables, "second").why, HasSubstr("signature \"s\" reads it by"));
  EXPECT_THAT(Table(tables, "small").why, HasSubstr("8 bytes; --map_tables_min_bytes is 120"));
  EXPECT_THAT(MappedTables::Of(session.get())->tables(), SizeIs(1));
  EXPECT_EQ((*Run(session.get(), {}, "second_value:0"))[29], -29);
  EXPECT_THAT(variables.TablesOf(graph_), ElementsAre(Table(tables, "first").mapped->data()));
}

TEST_F(MapVariablesTest, DamagedBytesAreNotCopied) {
  Damage();
  const auto session = Restored();
  MappedVariables variables(Graph(), {}, kBytes);
  EXPECT_TRUE(variables.Find(session.get()));
  tensorflow::SignatureDef declared;
  tensorflow::GraphDef graph = Served();
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.name() == "rows") node.set_op("ResourceGatherNd");
  }
  variables.Read("s", declared, &graph);
  EXPECT_EQ(variables.CopyOthers(session.get()).code(), absl::StatusCode::kDataLoss);
}

TEST_F(MapVariablesTest, NoneIsMappedWhereLoadingReadsOne) {
  EXPECT_TRUE(MappedVariables(Graph(), {}, kBytes).any());
  const MappedVariables variables(Graph(), Graph(), kBytes);
  EXPECT_FALSE(variables.any());
  EXPECT_THAT(Table(variables.Tables(), "first").why, HasSubstr("initialization reads \"first\""));
}

TEST_F(MapVariablesTest, EachLargeTableThatIsNotMappedIsNotedWithTheReason) {
  const auto session = Restored();
  MappedVariables variables = Loaded(session.get());
  ASSERT_TRUE(variables.CopyOthers(session.get()).ok());
  const std::string in_memory = "table \"second\" is in memory, not mapped: ";
  EXPECT_THAT(variables.notes(), ElementsAre(StartsWith(in_memory + "signature \"s\" reads it by"),
                                             StartsWith("1 table of ")));
  variables.KeepInMemory("so it is");
  EXPECT_THAT(variables.notes(),
              UnorderedElementsAre("table \"first\" is in memory, not mapped: so it is",
                                   StartsWith(in_memory + "signature")));
}

TEST_F(MapVariablesTest, ATableThatWasRestoredOtherwiseIsNoted) {
  const auto session = Restored(nullptr, /*least_bytes=*/kBytes + 1);
  MappedVariables variables(Graph(), {}, kBytes);
  EXPECT_TRUE(variables.Find(session.get()));
  EXPECT_THAT(variables.notes(), Each(HasSubstr("does not have it as one plain tensor")));
  EXPECT_THAT(variables.notes(), SizeIs(2));
}

TEST_F(MapVariablesTest, VariablesOfOtherKindsAreNoted) {
  const auto scope = tensorflow::Scope::NewRootScope();
  tensorflow::ops::Variable(scope.WithOpName("old"), {kRows, kWidth}, tensorflow::DT_FLOAT);
  tensorflow::GraphDef graph;
  TF_CHECK_OK(scope.ToGraphDef(&graph));
  EXPECT_THAT(MappedVariables(graph, {}, kBytes).notes(),
              ElementsAre("table \"old\" is in memory, not mapped: it is a TensorFlow 1 variable "
                          "that is no resource"));
}

TEST_F(MapVariablesTest, SmallTablesAreNoReasonToMap) {
  EXPECT_FALSE(MappedVariables(Graph(), {}, kBytes + 1).any());
}

}  // namespace
}  // namespace colcast::engine
