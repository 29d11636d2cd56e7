#include "server/engine/mapping/map_variables.h"

#include <gmock/gmock.h>

#include "server/engine/mapping/testing.h"

namespace colcast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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
  EXPECT_THAT(Table(variables.Tables(), "first").why, HasSubstr("while the model is loaded"));
}

TEST_F(MapVariablesTest, SmallTablesAreNoReasonToMap) {
  EXPECT_FALSE(MappedVariables(Graph(), {}, kBytes + 1).any());
}

}  // namespace
}  // namespace colcast::engine
