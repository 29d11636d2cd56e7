#include "server/engine/rewrites/packed_product_op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tensorflow/core/platform/bfloat16.h"

namespace colcast::engine {
namespace {

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

class Bfloat16ProductTest : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!HasBfloat16Products()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  }
};

// Also checks that nothing is written past the end of the output.
Floats Multiply(const Floats& inputs, const Floats& weights, const Shape& shape,
                const std::vector<const float*>& added, bool relu) {
  Floats out(shape.rows * shape.width + 64, 7);
  Bfloat16Weights(weights.data(), shape.depth, shape.width)
      .Multiply(inputs.data(), shape.rows, added, relu, out.data());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[shape.rows * shape.width + i], 7);
  out.resize(shape.rows * shape.width);
  return out;
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
    const Floats out = Multiply({NAN, 1, INFINITY, 1}, Floats(2, 1.0f), {2, 2, 1}, {}, relu);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], INFINITY);
  }
}

}  // namespace
}  // namespace colcast::engine
