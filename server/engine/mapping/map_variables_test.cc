#include "server/engine/mapping/map_variables.h"

#include <gmock/gmock.h>

#include "server/engine/mapping/testing.h"
#include "server/engine/session_resources.h"
#include "tensorflow/cc/ops/state_ops.h"
#include "tensorflow/core/framework/resource_var.h"

namespace colcast::engine {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class MapVariablesTest : public MappingTest {
 protected:
  // The variables of a model with a signature that returns rows of `first` and all of `second`.
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

TEST_F(MapVariablesTest, TablesThatAreOnlyLookedUpStayMappedAndOthersAreCopied) {
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

TEST_F(MapVariablesTest, NoTableIsMappedIfInitializationReadsOne) {
  EXPECT_TRUE(MappedVariables(Graph(), {}, kBytes).any());
  const MappedVariables variables(Graph(), Graph(), kBytes);
  EXPECT_FALSE(variables.any());
  EXPECT_THAT(Table(variables.Tables(), "first").why,
              HasSubstr("initialization reads a table by ResourceGather rows"));
}

TEST_F(MapVariablesTest, NotesGiveTheReasonForEachLargeTableInMemory) {
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

// As in a Keras 3 export: the init op assigns the value of `first` to `twin`.
class TwinTest : public MapVariablesTest {
 protected:
  TwinTest() : model_(Graph()) {
    namespace ops = tensorflow::ops;
    const auto scope = tensorflow::Scope::NewRootScope();
    const auto first = ops::VarHandleOp(scope.WithOpName("first"), tensorflow::DT_FLOAT,
                                        {kRows, kWidth}, ops::VarHandleOp::SharedName("first"));
    const auto twin = ops::VarHandleOp(scope.WithOpName("twin"), tensorflow::DT_FLOAT,
                                       {kRows, kWidth}, ops::VarHandleOp::SharedName("twin"));
    const auto value =
        ops::ReadVariableOp(scope.WithOpName("pass_on"), first, tensorflow::DT_FLOAT);
    ops::AssignVariableOp(scope.WithOpName("fill"), twin, value);
    TF_CHECK_OK(scope.ToGraphDef(&initializing_));
    for (const tensorflow::NodeDef& node : initializing_.node()) {
      if (node.name() != "first") *model_.add_node() = node;
    }
    ops::ReadVariableOp(scope.WithOpName("twin_value"), twin, tensorflow::DT_FLOAT);
    TF_CHECK_OK(scope.ToGraphDef(&served_));
    *model_.add_node() = served_.node(served_.node_size() - 1);
    session_ = Restored(model_);
    TF_CHECK_OK(session_->Run({}, {}, {"fill"}, nullptr));
  }

  tensorflow::GraphDef model_, initializing_, served_;
  std::unique_ptr<tensorflow::Session> session_;
};

TEST_F(TwinTest, BothVariablesStayMapped) {
  MappedVariables variables(model_, initializing_, kBytes);
  EXPECT_TRUE(variables.any());
  ASSERT_TRUE(variables.Find(session_.get()));
  const auto tables = variables.Tables();
  ASSERT_NE(Table(tables, "first").mapped, nullptr);
  EXPECT_EQ(Table(tables, "first").mapped, Table(tables, "twin").mapped);
  variables.Read("__saved_model_init_op", {}, &served_);
  ASSERT_TRUE(variables.CopyOthers(session_.get()).ok());
  EXPECT_NE(Table(variables.Tables(), "twin").mapped, nullptr);
}

TEST_F(TwinTest, ATableIsDroppedWhenAllItsVariablesAreFreed) {
  MappedVariables variables(model_, initializing_, kBytes);
  ASSERT_TRUE(variables.Find(session_.get()));
  const auto tables = MappedTables::Of(session_.get());
  const auto mapped = Table(variables.Tables(), "first").mapped;
  tensorflow::ResourceMgr* const resources = *ResourcesOf(session_.get());
  const auto free = [&](const char* name) {
    TF_CHECK_OK(resources->Delete<tensorflow::Var>(resources->default_container(), name));
    variables.DropFreed(session_.get());
  };
  free("twin");
  EXPECT_THAT(tables->tables(), Contains(mapped));
  free("first");
  EXPECT_THAT(tables->tables(), Not(Contains(mapped)));
  EXPECT_EQ(Table(variables.Tables(), "first").mapped, mapped);  // deltas still need it
}

TEST_F(TwinTest, BothVariablesAreCopiedIfOneIsReadWhole) {
  MappedVariables variables(model_, initializing_, kBytes);
  ASSERT_TRUE(variables.Find(session_.get()));
  tensorflow::SignatureDef declared;
  (*declared.mutable_outputs())["whole"].set_name("twin_value:0");
  variables.Read("s", declared, &served_);
  ASSERT_TRUE(variables.CopyOthers(session_.get()).ok());
  EXPECT_EQ(Table(variables.Tables(), "first").mapped, nullptr);
  EXPECT_THAT(Table(variables.Tables(), "first").why, HasSubstr("signature \"s\" reads it by"));
  EXPECT_EQ((*Run(session_.get(), {}, "twin_value:0"))[29], 29);
  EXPECT_EQ((*Run(session_.get(), {9}))[2], 29);
}

TEST_F(MapVariablesTest, NotesNameATableThatIsNotOnePlainTensor) {
  const auto session = Restored(nullptr, /*least_bytes=*/kBytes + 1);
  MappedVariables variables(Graph(), {}, kBytes);
  EXPECT_TRUE(variables.Find(session.get()));
  EXPECT_THAT(variables.notes(), Each(HasSubstr("does not have it as one plain tensor")));
  EXPECT_THAT(variables.notes(), SizeIs(2));
}

TEST_F(MapVariablesTest, NotesNameReferenceVariables) {
  const auto scope = tensorflow::Scope::NewRootScope();
  tensorflow::ops::Variable(scope.WithOpName("old"), {kRows, kWidth}, tensorflow::DT_FLOAT);
  tensorflow::GraphDef graph = GraphOf(scope);
  EXPECT_THAT(
      MappedVariables(graph, {}, kBytes).notes(),
      ElementsAre(
          "table \"old\" is in memory, not mapped: it is a TensorFlow 1 reference variable"));
}

TEST_F(MapVariablesTest, SmallTablesAreNotMapped) {
  EXPECT_FALSE(MappedVariables(Graph(), {}, kBytes + 1).any());
}

}  // namespace
}  // namespace colcast::engine
