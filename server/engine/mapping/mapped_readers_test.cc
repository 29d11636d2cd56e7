#include <gmock/gmock.h>

#include "server/engine/mapping/gather_op.h"
#include "server/engine/mapping/testing.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/framework/function.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class MappedReadersTest : public ::testing::Test {
 protected:
  MappedReadersTest()
      : scope_(tensorflow::Scope::NewRootScope()),
        table_(ops::VarHandleOp(scope_.WithOpName("handle"), tensorflow::DT_FLOAT, {10, 3},
                                ops::VarHandleOp::SharedName("table"))),
        ids_(ops::Placeholder(scope_.WithOpName("ids"), tensorflow::DT_INT64)) {}

  tensorflow::Output Value() {
    return ops::ReadVariableOp(scope_.WithOpName("value"), table_, tensorflow::DT_FLOAT);
  }

  using Others = std::map<std::string, std::string>;

  // The result for a signature with this output.
  Others Find(const std::string& output = "rows") {
    TF_CHECK_OK(scope_.ToGraphDef(&graph_));
    return Walk(output);
  }
  Others Walk(const std::string& output = "rows") {
    tensorflow::SignatureDef declared;
    (*declared.mutable_outputs())["rows"].set_name(output + ":0");
    return GatherMapped({"table"}, declared, &graph_);
  }

  bool IsMapped(const std::string& name) const {
    for (const tensorflow::NodeDef& node : graph_.node()) {
      if (node.name() == name) return IsMappedGather(node);
    }
    return false;
  }

  const tensorflow::Scope scope_;
  const tensorflow::Output table_, ids_;
  tensorflow::GraphDef graph_;
};

TEST_F(MappedReadersTest, AGatherByHandleIsMapped) {
  ops::ResourceGather(scope_.WithOpName("rows"), table_, ids_, tensorflow::DT_FLOAT);
  EXPECT_THAT(Find(), IsEmpty());
  EXPECT_TRUE(IsMapped("rows"));
}

TEST_F(MappedReadersTest, AGatherOfTheValueIsMappedIfItGathersRows) {
  const auto value = ops::Identity(scope_, Value());
  ops::GatherV2(scope_.WithOpName("rows"), value, ids_, 0);
  EXPECT_THAT(Find(), IsEmpty());
  EXPECT_TRUE(IsMapped("rows"));
  ops::GatherV2(scope_.WithOpName("columns"), value, ids_, 1);
  EXPECT_THAT(Find(), ElementsAre(Pair("table", "GatherV2 columns")));
  EXPECT_FALSE(IsMapped("columns"));
}

// Sums rows of the table by segment at the positions of distinct ids.
class SumTest : public MappedReadersTest {
 protected:
  SumTest() {
    const ops::Unique unique(scope_.WithOpName("unique"), ids_);
    const auto rows =
        ops::ResourceGather(scope_.WithOpName("rows"), table_, unique.y, tensorflow::DT_FLOAT);
    ops::SparseSegmentMean(scope_.WithOpName("sum"), ops::Identity(scope_, rows), unique.idx,
                           ops::Placeholder(scope_, tensorflow::DT_INT32));
  }
};

TEST_F(SumTest, ASumOverDistinctIdsReadsTheRowsOfAllIds) {
  EXPECT_THAT(Find("sum"), IsEmpty());
  EXPECT_TRUE(IsMapped("rows"));
  EXPECT_THAT(InputsOf(graph_, "rows"), ElementsAre("handle", "ids"));
  EXPECT_THAT(InputsOf(graph_, "sum"), ElementsAre("rows:0", "rows:1", "Placeholder"));
}

TEST_F(SumTest, RowsThatAreAlsoAnOutputAreGatheredPerDistinctId) {
  EXPECT_THAT(Find("rows"), IsEmpty());
  EXPECT_TRUE(IsMapped("rows"));
  EXPECT_THAT(InputsOf(graph_, "rows"), ElementsAre("handle", "unique"));
  EXPECT_THAT(InputsOf(graph_, "sum"), ElementsAre("Identity", "unique:1", "Placeholder"));
}

TEST_F(MappedReadersTest, ASumOfATablesRowsGathersThemFirst) {
  const auto ids = ops::Cast(scope_, ids_, tensorflow::DT_INT32);
  ops::SparseSegmentSum(scope_.WithOpName("sum"), Value(), ids,
                        ops::Placeholder(scope_, tensorflow::DT_INT32));
  EXPECT_THAT(Find("sum"), IsEmpty());
  EXPECT_TRUE(IsMapped("sum/rows"));
  EXPECT_THAT(InputsOf(graph_, "sum/rows"), ElementsAre("value", "ids"));  // without the cast
  EXPECT_THAT(InputsOf(graph_, "sum"), ElementsAre("sum/rows:0", "sum/rows:1", "Placeholder"));
}

TEST_F(MappedReadersTest, AReaderOfTheWholeTableIsNamed) {
  const auto left = ops::Placeholder(scope_, tensorflow::DT_FLOAT);
  ops::MatMul(scope_.WithOpName("rows"), left, Value());
  EXPECT_THAT(Find(), ElementsAre(Pair("table", "MatMul rows")));
}

TEST_F(MappedReadersTest, ReadingOnlyTheShapeIsAllowed) {
  ops::Shape(scope_.WithOpName("rows"), Value());
  EXPECT_THAT(Find(), IsEmpty());
}

TEST_F(MappedReadersTest, ATableThatIsAnOutputIsNamed) {
  Value();
  EXPECT_THAT(Find("value"), ElementsAre(Pair("table", "it is an output")));
}

TEST_F(MappedReadersTest, GathersInFunctionsAreMappedAndOtherReadersThereAreNamed) {
  using tensorflow::FunctionDefHelper;
  const auto call = [this](const std::string& op) {
    graph_.Clear();
    TF_CHECK_OK(scope_.ToGraphDef(&graph_));
    tensorflow::NodeDef* const node = graph_.add_node();
    node->set_name("rows");
    node->set_op("Inner");
    node->add_input("handle");
    node->add_input("ids");
    FunctionDefHelper::Node inner;
    inner.ret = {"inner"};
    inner.op = op;
    inner.arg = {"held", "ids"};
    inner.attr = {{"dtype", tensorflow::DT_FLOAT}, {"Tindices", tensorflow::DT_INT64}};
    *graph_.mutable_library()->add_function() =
        FunctionDefHelper::Create("Inner", {"held: resource", "ids: int64"}, {"out: float"}, {},
                                  {inner}, {{"out", "inner:output:0"}});
    return Walk();
  };
  EXPECT_THAT(call("ResourceGather"), IsEmpty());
  EXPECT_TRUE(IsMappedGather(graph_.library().function(0).node_def(0)));
  EXPECT_THAT(call("ResourceGatherNd"),
              ElementsAre(Pair("table", AllOf(HasSubstr("ResourceGatherNd"), HasSubstr("inner")))));
}

}  // namespace
}  // namespace colcast::engine
