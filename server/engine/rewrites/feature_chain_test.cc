#include "server/engine/rewrites/feature_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using tensorflow::DataType;
using TensorflowOutput = tensorflow::Output;

// Chains end in the node "part", which looks up rows of a table [9, 8].
class FeatureChainTest : public ::testing::Test {
 protected:
  FeatureChainTest() : scope_(tensorflow::Scope::NewRootScope()) {
    table_ = ops::VarHandleOp(scope_.WithOpName("table"), tensorflow::DT_FLOAT, {9, 8});
  }

  TensorflowOutput Column(DataType type, const std::vector<int64_t>& dims = {-1}) {
    return Fed(scope_.WithOpName("column"), type, dims);
  }

  void LookUp(const TensorflowOutput& ids) {
    ops::ResourceGather(scope_.WithOpName("part"), table_, ids, tensorflow::DT_FLOAT);
  }

  // "CHAIN of COLUMN", or "nothing".
  std::string Read(const std::set<std::string>& feeds = {"column"}) {
    tensorflow::GraphDef graph = GraphOf(scope_);
    const auto shaped = *ShapedGraph::Create(graph, feeds);
    const auto names = shaped->graph().BuildNodeNameIndex();
    const auto chain = ReadFeatureChain(*shaped, {names.at("part"), 0});
    if (!chain.has_value()) return "nothing";
    return chain->chain.Words() + " of " + chain->column.node->name();
  }

  tensorflow::Scope scope_;
  TensorflowOutput table_;
};

TEST_F(FeatureChainTest, StepsAreInExecutionOrder) {
  const auto hash = ops::StringToHashBucketFast(scope_, Column(tensorflow::DT_STRING), 50);
  const auto most = ops::Minimum(scope_, hash, ops::Const(scope_, int64_t{30}));
  LookUp(ops::FloorMod(scope_, most, ops::Const(scope_, int64_t{9})));
  EXPECT_EQ(Read(), "hash=50 at_most=30 mod=9 gather of column");
}

TEST_F(FeatureChainTest, IntegersAreHashedAsDecimals) {
  LookUp(
      ops::StringToHashBucketFast(scope_, ops::AsString(scope_, Column(tensorflow::DT_INT64)), 9));
  EXPECT_EQ(Read(), "hash=9 gather of column");
}

TEST_F(FeatureChainTest, AChainEndsAtAnUnknownOp) {
  const auto column = Column(tensorflow::DT_INT64);
  LookUp(ops::Abs(scope_.WithOpName("unknown"), column));
  EXPECT_EQ(Read(), "gather of unknown");
}

TEST_F(FeatureChainTest, AChainEndsAtAFedTensor) {
  const auto column = Column(tensorflow::DT_INT64);
  LookUp(ops::FloorMod(scope_.WithOpName("fed"), column, ops::Const(scope_, int64_t{9})));
  EXPECT_EQ(Read({"fed"}), "gather of fed");
}

TEST_F(FeatureChainTest, AModulusOfZeroIsLeftToTensorFlow) {
  const auto column = Column(tensorflow::DT_INT64);
  LookUp(ops::FloorMod(scope_.WithOpName("mod"), column, ops::Const(scope_, int64_t{0})));
  EXPECT_EQ(Read(), "gather of mod");
}

TEST_F(FeatureChainTest, ASumOverAnotherAxisIsCopied) {
  const auto rows = ops::ResourceGather(scope_, table_, Column(tensorflow::DT_INT64, {-1, 5}),
                                        tensorflow::DT_FLOAT);
  ops::Sum(scope_.WithOpName("part"), rows, 2);
  EXPECT_EQ(Read(), "copy of part");
}

// Computes the mean of a list's rows, ignoring id 4, with a divisor of at least `least`.
TEST_F(FeatureChainTest, AMeanWithAnotherDivisorOrAFedMaskIsCopied) {
  for (const float least : {1.0f, 2.0f}) {
    scope_ = tensorflow::Scope::NewRootScope();
    table_ = ops::VarHandleOp(scope_.WithOpName("table"), tensorflow::DT_FLOAT, {9, 8});
    const auto ids = Column(tensorflow::DT_INT64, {-1, -1});
    const auto rows = ops::ResourceGather(scope_, table_, ids, tensorflow::DT_FLOAT);
    const auto differs = ops::NotEqual(scope_, ids, ops::Const(scope_, int64_t{4}));
    const auto shown = ops::Cast(scope_.WithOpName("shown"), differs, tensorflow::DT_FLOAT);
    const auto mask = ops::ExpandDims(scope_, shown, -1);
    ops::RealDiv(scope_.WithOpName("part"), ops::Sum(scope_, ops::Mul(scope_, rows, mask), 1),
                 ops::Maximum(scope_, ops::Sum(scope_, mask, 1), least));
    EXPECT_EQ(Read(), least == 1 ? "hide=4 gather mean of column" : "copy of part");
    EXPECT_EQ(Read({"shown"}), "copy of part");
  }
}

TEST_F(FeatureChainTest, AVectorHasNoChain) {
  ops::Identity(scope_.WithOpName("part"), Column(tensorflow::DT_FLOAT));
  EXPECT_EQ(Read(), "nothing");
}

}  // namespace
}  // namespace colcast::engine
