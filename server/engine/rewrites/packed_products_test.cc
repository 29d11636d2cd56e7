#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/testing.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/bfloat16.h"
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

  // The first score of a row in which every value is `value`.
  static absl::StatusOr<float> Score(tensorflow::Session* session, float value,
                                     int64_t depth = kDepth, const std::string& fetch = "score:0") {
    Tensor x(tensorflow::DT_FLOAT, {3, depth});
    x.flat<float>().setConstant(value);
    const absl::StatusOr<Tensor> score = Fetch(session, {{"x", x}}, fetch);
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

// Tests that run products need a CPU with the op's instructions.
class PackedProductRunsTest : public PackedProductsTest {
 protected:
  void SetUp() override {
    if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  }
};

TEST_F(PackedProductRunsTest, TheOpAddsRowsAndAppliesTheRelu) {
  const auto user = ops::Fill(scope_, {1, int{kWidth}}, 0.25f);
  const auto sum = ops::AddV2(scope_, user, ops::MatMul(scope_, x_, weights_));
  ops::Relu(scope_.WithOpName("score"), ops::BiasAdd(scope_, sum, row_));
  const auto session = SessionOf(Rewritten(1));
  ExpectScore(session.get(), 1, 32.75f);
  ExpectScore(session.get(), -1, 0);
}

// TensorFlow fuses a product with one bias and a Relu; the fused Relu makes NaN 0.
TEST_F(PackedProductRunsTest, NanGivesTheSameResultAsInTensorFlow) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto one = ops::BiasAdd(scope_, ops::MatMul(scope_, x_, weights_), row_);
  ops::Relu(scope_.WithOpName("score"), one);
  EXPECT_EQ(*Score(SessionOf(Rewritten(1)).get(), nan), 0);
  EXPECT_EQ(*Score(SessionOf(GraphOf(scope_)).get(), nan), 0);
  const auto two = ops::BiasAdd(scope_, ops::MatMul(scope_, x_, weights_), row_);
  ops::Relu(scope_.WithOpName("unfused"), ops::BiasAdd(scope_, two, row_));
  EXPECT_TRUE(std::isnan(*Score(SessionOf(Rewritten(2)).get(), nan, kDepth, "unfused:0")));
  EXPECT_TRUE(std::isnan(*Score(SessionOf(GraphOf(scope_)).get(), nan, kDepth, "unfused:0")));
}

TEST_F(PackedProductRunsTest, TheWeightsMayBeRowsOfAConstant) {
  Tensor kernel(tensorflow::DT_FLOAT, {kDepth + 3, kWidth});
  for (int64_t i = 0; i < kernel.NumElements(); ++i) {
    kernel.flat<float>()(i) = static_cast<float>(i / kWidth);
  }
  const auto whole = ops::Const(scope_, tensorflow::Input::Initializer(kernel));
  const auto rows = ops::Slice(scope_, whole, {2, 0}, {int{kDepth}, int{kWidth}});
  ops::MatMul(scope_.WithOpName("score"), x_, rows);
  ExpectScore(SessionOf(Rewritten(1)).get(), 1, (2 + 33) * 16);
}

TEST_F(PackedProductsTest, OnlyProductsOfVariablesAndConstantsAreReplaced) {
  const auto matrix = Fed(scope_.WithOpName("matrix"), tensorflow::DT_FLOAT, {kDepth, kWidth});
  ops::MatMul(scope_, x_, matrix);
  ops::MatMul(scope_, x_, ops::Fill(scope_, {int{kDepth}, 8}, 1.0f));  // too narrow
  ops::MatMul(scope_, x_, weights_, ops::MatMul::TransposeA(true));
  const auto wide = ops::Const(scope_, 1.0f, {int{kDepth}, 40});  // some of its columns
  ops::MatMul(scope_, x_, ops::Slice(scope_, wide, {0, 2}, {int{kDepth}, 32}));
  ops::MatMul(scope_, x_, ops::Slice(scope_, wide, {0, 0}, {int{kDepth}, 32}));
  Rewritten(0);
}

TEST_F(PackedProductsTest, AReluStaysIfOtherNodesReadTheProduct) {
  const auto product = ops::MatMul(scope_, x_, weights_);
  ops::Relu(scope_.WithOpName("score"), product);
  ops::Relu(scope_.WithOpName("other"), product);
  const GraphDef graph = Rewritten(1);
  EXPECT_THAT(InputsOf(graph, "score"), ::testing::ElementsAre(product.node()->name()));
}

TEST_F(PackedProductRunsTest, EveryKindOfUpdateOfTheVariableIsSeen) {
  ops::MatMul(scope_.WithOpName("score"), x_, weights_);
  const auto session = SessionOf(Rewritten(1));
  ExpectScore(session.get(), 1, 32);
  ExpectScore(session.get(), 1, 32);
  const std::pair<const char*, float> kUpdates[] = {
      {"update", 64}, {"add", 96}, {"add", 128}, {"scatter", 224}, {"add", 256}, {"scatter", 255}};
  for (const auto& [update, score] : kUpdates) {
    TF_CHECK_OK(session->Run({}, {}, {update}, nullptr));
    ExpectScore(session.get(), 1, score);
  }
}

TEST_F(PackedProductRunsTest, AMatrixThatDoesNotFitGivesMatMulsError) {
  ops::MatMul(scope_.WithOpName("score"), x_, weights_);
  for (const GraphDef& graph : {GraphOf(scope_), Rewritten(1)}) {
    const absl::Status status = Score(SessionOf(graph).get(), 1, kDepth + 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("In[0]: [3,33], In[1]: [32,16]"));
  }
}

TEST(FastRewritesTest, RewritesThatTheCpuCannotRunAreLeftOut) {
  EXPECT_EQ(FastRewrites({}).size(), HasBfloat16Products() ? 2 : 1);
}

using Floats = std::vector<float>;

struct Shape {
  int64_t rows, depth, width;
};

Floats Random(int64_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

float Rounded(float value) { return static_cast<float>(tensorflow::bfloat16(value)); }

// A session with the op alone: score = activation(x * weights + one + other).
std::unique_ptr<tensorflow::Session> ProductOf(int64_t depth, bool relu) {
  const Scope scope = Scope::NewRootScope();
  for (const char* const input : {"x", "weights", "one", "other"}) {
    ops::Placeholder(scope.WithOpName(input), tensorflow::DT_FLOAT);
  }
  GraphDef graph = GraphOf(scope);
  tensorflow::NodeDef* const product = graph.add_node();
  product->set_name("score");
  product->set_op(Bfloat16ProductOpName());
  for (const char* const input : {"x", "weights", "one", "other"}) product->add_input(input);
  tensorflow::AddNodeAttr("num_added", 2, product);
  tensorflow::AddNodeAttr("first_row", 0, product);
  tensorflow::AddNodeAttr("depth", depth, product);
  tensorflow::AddNodeAttr("relu", relu, product);
  return SessionOf(graph);
}

class PackedProductBits : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  }
};

TEST_P(PackedProductBits, EqualProductsOfRoundedNumbersWhateverTheOtherRows) {
  const auto [rows, depth, width] = GetParam();
  const Floats x = Random(rows * depth, 1), weights = Random(depth * width, 2);
  const Floats one = Random(width, 3), other = Random(width, 4);
  const Feeds fixed = {{"weights", AsTensor(weights, {depth, width})},
                       {"one", AsTensor(one, {width})},
                       {"other", AsTensor(other, {1, width})}};
  for (const bool relu : {false, true}) {
    const auto session = ProductOf(depth, relu);
    const auto product = [&](const Floats& inputs) {
      Feeds feeds = fixed;
      feeds.emplace_back("x",
                         AsTensor(inputs, {static_cast<int64_t>(inputs.size()) / depth, depth}));
      return ElementsOf(*Fetch(session.get(), feeds, "score:0"));
    };
    EXPECT_EQ(product({}).size(), 0);
    const Floats together = product(x);
    for (int64_t row = 0; row < rows; ++row) {
      const Floats alone = product({x.begin() + row * depth, x.begin() + (row + 1) * depth});
      for (int64_t column = 0; column < width; ++column) {
        double expected = static_cast<double>(one[column]) + other[column];
        for (int64_t i = 0; i < depth; ++i) {
          expected += static_cast<double>(Rounded(x[row * depth + i])) *
                      Rounded(weights[i * width + column]);
        }
        if (relu) expected = std::max(0.0, expected);
        EXPECT_NEAR(together[row * width + column], expected, 1e-4) << row << " " << column;
        EXPECT_EQ(together[row * width + column], alone[column]) << row << " " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PackedProductBits,
                         ::testing::Values(Shape{1, 1, 1}, Shape{2, 3, 5}, Shape{6, 16, 64},
                                           Shape{7, 17, 65}, Shape{13, 33, 100}, Shape{5, 660, 256},
                                           Shape{12, 31, 16}, Shape{3, 32, 129}));

TEST(ScratchTest, AThreadKeepsNoMemoryOfALargeProduct) {
  if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  constexpr int64_t kRows = 480, kDeep = 4096;  // rounded inputs of 3.9 MB
  const auto session = ProductOf(kDeep, false);
  ExpectNothingKept([&](bool is_large) {
    const int64_t rows = is_large ? kRows : 1;
    ASSERT_TRUE(Fetch(session.get(),
                      {{"x", AsTensor(Floats(rows * kDeep), {rows, kDeep})},
                       {"weights", AsTensor(Floats(kDeep * 16), {kDeep, 16})},
                       {"one", AsTensor(Floats(16), {16})},
                       {"other", AsTensor(Floats(16), {16})}},
                      "score:0")
                    .ok());
  });
}

}  // namespace
}  // namespace colcast::engine
