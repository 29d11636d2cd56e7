#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/rewrites/feature_chain.h"
#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using TensorflowOutput = tensorflow::Output;

class ListPatternsTest : public ::testing::Test {
 protected:
  ListPatternsTest() : scope_(tensorflow::Scope::NewRootScope()) {}

  TensorflowOutput Column(const char* name, tensorflow::DataType type,
                          const std::vector<int64_t>& dims) {
    return Fed(scope_.WithOpName(name), type, dims);
  }

  // "mean" is the mean of rows [?, ?, 8] with ids [?, ?]; the divisor is at least `least`.
  void Mean(float least) {
    const auto ids = Column("ids", tensorflow::DT_INT64, {-1, -1});
    const auto rows = Column("rows", tensorflow::DT_FLOAT, {-1, -1, 8});
    const auto shown =
        ops::Cast(scope_.WithOpName("shown"),
                  ops::NotEqual(scope_, ids, ops::Const(scope_, int64_t{4})), tensorflow::DT_FLOAT);
    const auto mask = ops::ExpandDims(scope_, shown, -1);
    ops::RealDiv(scope_.WithOpName("mean"), ops::Sum(scope_, ops::Mul(scope_, rows, mask), 1),
                 ops::Maximum(scope_, ops::Sum(scope_, mask, 1), least));
  }

  // Builds the list that tf.sparse.to_dense makes of a column and its lengths.
  void Pad(int first) {
    const auto column = Column("column", tensorflow::DT_INT64, {-1, -1});
    const auto lengths = Column("lengths", tensorflow::DT_INT64, {-1});
    const auto most = ops::Max(scope_, lengths, {0}, ops::Max::KeepDims(true));
    const auto longest = ops::Maximum(scope_, most, ops::Const(scope_, {int64_t{0}}));
    const auto range =
        ops::Range(scope_, ops::Const(scope_, int64_t{first}),
                   ops::Reshape(scope_, longest, ops::Const<int32_t>(scope_, {}, {0})),
                   ops::Const(scope_, int64_t{1}));
    const auto indices =
        ops::Where(scope_, ops::Less(scope_, range, ops::ExpandDims(scope_, lengths, 1)));
    const auto shape = ops::Concat(
        scope_,
        {TensorflowOutput(ops::Shape(scope_, lengths, ops::Shape::OutType(tensorflow::DT_INT64))),
         TensorflowOutput(longest)},
        0);
    ops::SparseToDense(scope_.WithOpName("list"), indices, shape,
                       ops::GatherNd(scope_.WithOpName("gather"), column, indices),
                       ops::Const(scope_, int64_t{-1}));
  }

  Output Of(const std::string& node, std::set<std::string> feeds = {}) {
    tensorflow::GraphDef graph = GraphOf(scope_);
    graph_ = *ShapedGraph::Create(graph, std::move(feeds));
    return {graph_->graph().BuildNodeNameIndex().at(node), 0};
  }

  tensorflow::Scope scope_;
  std::unique_ptr<ShapedGraph> graph_;
};

TEST_F(ListPatternsTest, AMeanWithoutAHiddenIdIsRead) {
  Mean(1);
  const Output mean = Of("mean");
  const auto read = ReadMaskedMean(*graph_, mean);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->rows.node->name(), "rows");
  EXPECT_EQ(read->ids.node->name(), "ids");
  EXPECT_EQ(read->hidden, 4);
}

TEST_F(ListPatternsTest, AMeanDividedByAnotherNumberOrOfAFedMaskIsNotRead) {
  for (const bool is_fed : {false, true}) {
    scope_ = tensorflow::Scope::NewRootScope();
    Mean(is_fed ? 1 : 2);
    const Output mean =
        Of("mean", is_fed ? std::set<std::string>{"shown"} : std::set<std::string>());
    EXPECT_FALSE(ReadMaskedMean(*graph_, mean).has_value());
  }
}

TEST_F(ListPatternsTest, APaddedListIsRead) {
  Pad(0);
  const Output list = Of("list");
  const auto read = ReadPaddedList(*graph_, list);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->column.node->name(), "column");
  EXPECT_EQ(read->lengths.node->name(), "lengths");
  EXPECT_EQ(read->gather, "gather");
}

TEST_F(ListPatternsTest, AListThatBeginsElsewhereIsNotRead) {
  Pad(1);
  const Output list = Of("list");
  EXPECT_FALSE(ReadPaddedList(*graph_, list).has_value());
}

}  // namespace
}  // namespace colcast::engine
