#include "server/engine/rewrites/bfloat16_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "server/engine/rewrites/products_testing.h"
#include "tensorflow/core/platform/bfloat16.h"

namespace colcast::engine {
namespace {

float Rounded(float value) { return static_cast<float>(tensorflow::bfloat16(value)); }

class Bfloat16ProductTest : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  }
};

Floats Multiply(const Floats& inputs, const Floats& weights, const Shape& shape,
                const std::vector<const float*>& added, bool relu) {
  return MultiplyBy<Bfloat16Weights>(inputs, weights, shape, added, relu);
}

TEST_P(Bfloat16ProductTest, IsThatOfTheRoundedNumbers) {
  const auto [rows, depth, width] = GetParam();
  const Floats inputs = Random(rows * depth, 1), weights = Random(depth * width, 2);
  const Floats one = Random(width, 3), other = Random(width, 4);
  for (const bool relu : {false, true}) {
    const Floats out = Multiply(inputs, weights, GetParam(), {one.data(), other.data()}, relu);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        double expected = static_cast<double>(one[column]) + other[column];
        for (int64_t i = 0; i < depth; ++i) {
          expected += static_cast<double>(Rounded(inputs[row * depth + i])) *
                      Rounded(weights[i * width + column]);
        }
        if (relu) expected = std::max(0.0, expected);
        EXPECT_NEAR(out[row * width + column], expected, 1e-4) << row << " " << column;
      }
    }
  }
}

TEST_P(Bfloat16ProductTest, ARowsBitsDoNotDependOnItsNeighbours) {
  const auto [rows, depth, width] = GetParam();
  const Floats inputs = Random(rows * depth, 1), weights = Random(depth * width, 2);
  const Floats together = Multiply(inputs, weights, GetParam(), {}, false);
  for (int64_t row = 0; row < rows; ++row) {
    const Floats own(inputs.begin() + row * depth, inputs.begin() + (row + 1) * depth);
    const Floats alone = Multiply(own, weights, {1, depth, width}, {}, false);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * width));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bfloat16ProductTest,
                         ::testing::Values(Shape{1, 1, 1}, Shape{2, 3, 5}, Shape{6, 16, 64},
                                           Shape{7, 17, 65}, Shape{13, 33, 100}, Shape{5, 660, 256},
                                           Shape{12, 31, 16}, Shape{3, 32, 129}));

TEST_F(Bfloat16ProductTest, NumbersThatAreNoneStay) {
  for (const bool relu : {false, true}) {
    const Floats out = Multiply({kNan, 1, INFINITY, 1}, Floats(2, 1.0f), {2, 2, 1}, {}, relu);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], INFINITY);
  }
}

}  // namespace
}  // namespace colcast::engine
