#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/rewrites/packed_product_op.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/public/session.h"

namespace colcast::engine {
namespace {

namespace ops = tensorflow::ops;
using tensorflow::GraphDef;
using tensorflow::Output;
using tensorflow::Scope;
using tensorflow::Tensor;
using ::testing::HasSubstr;

constexpr int64_t kDepth = 32;
constexpr int64_t kWidth = 16;

// x [?, 32] times a variable [32, 16] of ones.
class PackedProductsTest : public ::testing::Test {
 protected:
  PackedProductsTest() : scope_(Scope::NewRootScope()) {
    x_ = Fed(scope_.WithOpName("x"), tensorflow::DT_FLOAT, {-1, kDepth});
    const auto handle = ops::VarHandleOp(scope_, tensorflow::DT_FLOAT, {kDepth, kWidth});
    const auto to = [&](const char* name, float value) {
      ops::AssignVariableOp(scope_.WithOpName(name), handle,
                            ops::Fill(scope_, {int{kDepth}, int{kWidth}}, value));
    };
    to("init", 1);
    to("update", 2);
    ops::AssignAddVariableOp(scope_.WithOpName("add"), handle,
                             ops::Fill(scope_, {int{kDepth}, int{kWidth}}, 1.0f));
    ops::ResourceScatterUpdate(scope_.WithOpName("scatter"), handle, {0},
                               ops::Fill(scope_, {1, int{kWidth}}, 100.0f));
    weights_ = ops::ReadVariableOp(scope_, handle, tensorflow::DT_FLOAT);
    row_ = ops::Fill(scope_, {int{kWidth}}, 0.5f);
  }

  GraphDef Rewritten(int products, const std::set<std::string>& feeds = {"x"}) const {
    return RewrittenBy(UseBfloat16Products, GraphOf(scope_), products, feeds);
  }

  static bool HasOp(const GraphDef& graph, const std::string& op) {
    for (const auto& node : graph.node()) {
      if (node.op() == op) return true;
    }
    return false;
  }

  // The first score of a row in which every value is `value`.
  static absl::StatusOr<float> Score(tensorflow::Session* session, float value,
                                     int64_t depth = kDepth) {
    Tensor x(tensorflow::DT_FLOAT, {3, depth});
    x.flat<float>().setConstant(value);
    const absl::StatusOr<Tensor> score = Fetch(session, {{"x", x}}, "score:0");
    if (!score.ok()) return score.status();
    EXPECT_EQ(score->shape(), tensorflow::TensorShape({3, kWidth}));
    return score->flat<float>()(0);
  }

  // Rounding changes the score by at most 0.3 %.
  static void ExpectScore(tensorflow::Session* session, float value, float score) {
    EXPECT_NEAR(*Score(session, value), score, 0.003f * score);
  }

  Scope scope_;
  Output x_, weights_, row_;
};

TEST_F(PackedProductsTest, TakeWhatIsAddedAndTheRelu) {
  if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU cannot multiply like that";
  const auto user = ops::Fill(scope_, {1, int{kWidth}}, 0.25f);
  const auto sum = ops::AddV2(scope_, user, ops::MatMul(scope_, x_, weights_));
  ops::Relu(scope_.WithOpName("score"), ops::BiasAdd(scope_, sum, row_));
  const auto session = SessionOf(Rewritten(1));
  ExpectScore(session.get(), 1, 32.75f);
  ExpectScore(session.get(), -1, 0);
}

TEST_F(PackedProductsTest, MakeOfNanWhatTensorFlowMakesOfIt) {
  if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU cannot multiply like that";
  const auto product = ops::BiasAdd(scope_, ops::MatMul(scope_, x_, weights_), row_);
  ops::Relu(scope_.WithOpName("score"), product);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(*Score(SessionOf(Rewritten(1)).get(), nan), 0);
  EXPECT_FLOAT_EQ(*Score(SessionOf(GraphOf(scope_)).get(), nan), 0);
}

TEST_F(PackedProductsTest, LeaveANanThatNoReluWouldReachInOneOp) {
  if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU cannot multiply like that";
  const auto sum = ops::BiasAdd(scope_, ops::MatMul(scope_, x_, weights_), row_);
  ops::Relu(scope_.WithOpName("score"), ops::BiasAdd(scope_, sum, row_));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(*Score(SessionOf(Rewritten(1)).get(), nan)));
  EXPECT_TRUE(std::isnan(*Score(SessionOf(GraphOf(scope_)).get(), nan)));
}

TEST_F(PackedProductsTest, TakeSomeRowsOfAConstant) {
  if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU cannot multiply like that";
  Tensor kernel(tensorflow::DT_FLOAT, {kDepth + 3, kWidth});
  for (int64_t i = 0; i < kernel.NumElements(); ++i) {
    kernel.flat<float>()(i) = static_cast<float>(i / kWidth);
  }
  const auto whole = ops::Const(scope_, tensorflow::Input::Initializer(kernel));
  const auto rows = ops::Slice(scope_, whole, {2, 0}, {int{kDepth}, int{kWidth}});
  ops::MatMul(scope_.WithOpName("score"), x_, rows);
  const GraphDef graph = Rewritten(1);
  ExpectScore(SessionOf(graph).get(), 1, (2 + 33) * 16);
}

TEST_F(PackedProductsTest, SomeColumnsOfAMatrixAreNotTaken) {
  const auto wide = ops::Const(scope_, 1.0f, {int{kDepth}, 40});
  ops::MatMul(scope_, x_, ops::Slice(scope_, wide, {0, 2}, {int{kDepth}, 32}));
  ops::MatMul(scope_, x_, ops::Slice(scope_, wide, {0, 0}, {int{kDepth}, 32}));
  Rewritten(0);
}

TEST_F(PackedProductsTest, WhatOthersReadIsNotTakenAlong) {
  const auto product = ops::MatMul(scope_, x_, weights_);
  ops::Relu(scope_.WithOpName("score"), product);
  ops::Relu(scope_.WithOpName("other"), product);
  const GraphDef graph = Rewritten(1);
  EXPECT_TRUE(HasOp(graph, "Relu"));
}

TEST_F(PackedProductsTest, OnlyProductsOfVariablesAndConstantsAreTaken) {
  const auto matrix = Fed(scope_.WithOpName("matrix"), tensorflow::DT_FLOAT, {kDepth, kWidth});
  ops::MatMul(scope_, x_, matrix);
  ops::MatMul(scope_, x_, ops::Fill(scope_, {int{kDepth}, 8}, 1.0f));  // too narrow
  ops::MatMul(scope_, x_, weights_, ops::MatMul::TransposeA(true));
  Rewritten(0);
}

TEST_F(PackedProductsTest, EveryKindOfUpdateOfTheVariableIsSeen) {
  if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU cannot multiply like that";
  ops::MatMul(scope_.WithOpName("score"), x_, weights_);
  const auto session = SessionOf(Rewritten(1));
  ExpectScore(session.get(), 1, 32);
  ExpectScore(session.get(), 1, 32);
  const auto run = [&](const char* node) { TF_CHECK_OK(session->Run({}, {}, {node}, nullptr)); };
  run("update");
  ExpectScore(session.get(), 1, 64);
  run("add");
  ExpectScore(session.get(), 1, 96);
  run("add");
  ExpectScore(session.get(), 1, 128);
  run("scatter");  // sets one row to 100
  ExpectScore(session.get(), 1, 224);
  run("add");
  ExpectScore(session.get(), 1, 256);
  run("scatter");
  ExpectScore(session.get(), 1, 255);
}

TEST_F(PackedProductsTest, AMatrixThatDoesNotFitIsMatMulsError) {
  if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU cannot multiply like that";
  ops::MatMul(scope_.WithOpName("score"), x_, weights_);
  for (const GraphDef& graph : {GraphOf(scope_), Rewritten(1)}) {
    const absl::Status status = Score(SessionOf(graph).get(), 1, kDepth + 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("In[0]: [3,33], In[1]: [32,16]"));
  }
}

TEST_F(PackedProductsTest, WithoutRowsThereIsNothingToDo) {
  if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU cannot multiply like that";
  ops::MatMul(scope_.WithOpName("score"), x_, weights_);
  std::vector<Tensor> outputs;
  const Tensor none(tensorflow::DT_FLOAT, {0, kDepth});
  TF_CHECK_OK(SessionOf(Rewritten(1))->Run({{"x", none}}, {"score:0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].shape(), tensorflow::TensorShape({0, kWidth}));
}

TEST(FastRewritesTest, AreNotTriedOnACpuWithoutTheirInstructions) {
  EXPECT_EQ(FastRewrites({}).size(), HasBfloat16Products() ? 2 : 1);
}

}  // namespace
}  // namespace colcast::engine
