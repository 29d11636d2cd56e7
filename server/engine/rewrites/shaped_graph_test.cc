#include "server/engine/rewrites/shaped_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/lookup_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using ::testing::ElementsAre;
using ::testing::Optional;

class ShapedGraphTest : public ::testing::Test {
 protected:
  ShapedGraphTest() : scope_(tensorflow::Scope::NewRootScope()) {}

  Output Of(const std::string& node, std::set<std::string> feeds = {}) {
    if (graph_ == nullptr) {
      tensorflow::GraphDef graph = GraphOf(scope_);
      graph_ = *ShapedGraph::Create(graph, std::move(feeds));
    }
    return {graph_->graph().BuildNodeNameIndex().at(node), 0};
  }

  tensorflow::Output Column(const std::vector<int64_t>& dims, tensorflow::DataType type) {
    return Fed(scope_.WithOpName("column"), type, dims);
  }

  tensorflow::Scope scope_;
  std::unique_ptr<ShapedGraph> graph_;
};

TEST_F(ShapedGraphTest, ShapesAreInferredFromColumns) {
  const auto column = Column({-1, 3}, tensorflow::DT_INT64);
  ops::ExpandDims(scope_.WithOpName("wider"), column, -1);
  const Output wider = Of("wider");
  EXPECT_EQ(wider.type(), tensorflow::DT_INT64);
  EXPECT_EQ(graph_->ShapeOf(wider).DebugString(), "[?,3,1]");
}

TEST_F(ShapedGraphTest, ALookupAndItsReadersHaveTheShapeOfTheKeys) {
  const auto column = Column({-1, 3}, tensorflow::DT_STRING);
  const auto table = ops::HashTable(scope_, tensorflow::DT_STRING, tensorflow::DT_INT64);
  const auto found = ops::LookupTableFind(scope_, table, column, ops::Const(scope_, int64_t{-1}));
  ops::ExpandDims(scope_.WithOpName("wider"), found, -1);
  const Output wider = Of("wider");
  EXPECT_EQ(graph_->ShapeOf(wider).DebugString(), "[?,3,1]");
}

TEST_F(ShapedGraphTest, IntegersComputedFromConstantsAreKnown) {
  const auto column = Column({-1}, tensorflow::DT_INT64);
  ops::AddV2(scope_.WithOpName("sum"), ops::Const(scope_, {1, 2}), ops::Const(scope_, {3, 4}));
  ops::Const(scope_.WithOpName("scalar"), int64_t{7});
  ops::Const(scope_.WithOpName("one"), {int64_t{7}});
  ops::Const(scope_.WithOpName("number"), 1.5f);
  const Output sum = Of("sum");
  EXPECT_THAT(graph_->Integers(sum), Optional(ElementsAre(4, 6)));
  EXPECT_THAT(graph_->Integer(Of("scalar")), Optional(7));
  EXPECT_EQ(graph_->Integer(Of("one")), std::nullopt);  // a vector
  EXPECT_EQ(graph_->Integers(Of("number")), std::nullopt);
  EXPECT_TRUE(graph_->Constant(Of("number")).has_value());
  EXPECT_EQ(graph_->Integers(Of("column")), std::nullopt);
}

TEST_F(ShapedGraphTest, AFedTensorMatchesNoOp) {
  const auto same = ops::Identity(scope_.WithOpName("same"), Column({-1}, tensorflow::DT_INT64));
  ops::Identity(scope_.WithOpName("fed"), same);
  const Output fed = Of("fed", {"fed"});
  EXPECT_FALSE(graph_->Is(fed, "Identity"));
  EXPECT_TRUE(graph_->Is(Of("same"), "Identity"));
  EXPECT_FALSE(graph_->Is(Of("same"), "Squeeze"));
  EXPECT_TRUE(IsSame(In(*Of("same").node, 0), Of("column")));
}

TEST(ShapedGraphErrorsTest, ErrorsNameTheUnregisteredOp) {
  tensorflow::GraphDef graph;
  graph.add_node()->set_name("strange");
  graph.mutable_node(0)->set_op("NoSuchOp");
  const auto shaped = ShapedGraph::Create(graph);
  ASSERT_FALSE(shaped.ok());
  EXPECT_THAT(std::string(shaped.status().message()), ::testing::HasSubstr("NoSuchOp"));
}

}  // namespace
}  // namespace colcast::engine
