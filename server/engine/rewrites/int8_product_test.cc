#include "server/engine/rewrites/int8_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "server/engine/rewrites/int8_rounding.h"
#include "server/engine/rewrites/products_testing.h"

namespace colcast::engine {
namespace {

class Int8ProductTest : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!HasInt8Products()) GTEST_SKIP() << "this CPU has no AVX512-VNNI";
  }
};

Floats Multiply(const Floats& inputs, const Floats& weights, const Shape& shape,
                const std::vector<const float*>& added = {}, bool relu = false) {
  return MultiplyBy<Int8Weights>(inputs, weights, shape, added, relu);
}

bool HasSameBits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

// A matrix as it is after rounding, row by row or column by column; rows that are not rounded stay.
Floats RoundedRows(Floats inputs, int64_t rows, int64_t depth) {
  std::vector<uint8_t> rounded(depth + kRoundingSlack);
  for (int64_t row = 0; row < rows; ++row) {
    float* const values = inputs.data() + row * depth;
    Rounding rounding;
    if (!RoundRow(values, depth, &rounding, rounded.data())) continue;
    for (int64_t i = 0; i < depth; ++i) {
      values[i] = rounding.step * static_cast<float>(rounded[i] - rounding.zero);
    }
  }
  return inputs;
}

Floats RoundedColumns(Floats weights, int64_t depth, int64_t width) {
  std::vector<int8_t> rounded(depth);
  for (int64_t column = 0; column < width; ++column) {
    float step;
    EXPECT_TRUE(RoundWeights(&weights[column], depth, width, &step, rounded.data()));
    for (int64_t i = 0; i < depth; ++i) weights[i * width + column] = step * rounded[i];
  }
  return weights;
}

double Expected(const Floats& inputs, const Floats& weights, const Shape& shape, int64_t row,
                int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < shape.depth; ++i) {
    sum += static_cast<double>(inputs[row * shape.depth + i]) * weights[i * shape.width + column];
  }
  return sum;
}

// What float32 gives: the same if it is no number.
void ExpectClose(float got, double expected) {
  if (std::isfinite(expected)) {
    EXPECT_NEAR(got, expected, 1e-5 * std::max(1.0, std::abs(expected)));
  } else {
    EXPECT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << got;
  }
}

TEST_P(Int8ProductTest, IsThatOfTheRoundedNumbers) {
  const auto [rows, depth, width] = GetParam();
  const Floats inputs = Random(rows * depth, 1), weights = Random(depth * width, 2);
  const Floats one = Random(width, 3), other = Random(width, 4);
  ASSERT_TRUE(Int8Weights(weights.data(), depth, width).is_rounded());
  const Floats rounded = RoundedRows(inputs, rows, depth);
  const Floats columns = RoundedColumns(weights, depth, width);
  for (const bool relu : {false, true}) {
    const Floats out = Multiply(inputs, weights, GetParam(), {one.data(), other.data()}, relu);
    for (int64_t row = 0; row < rows; ++row) {
      const bool stays =
          std::equal(&rounded[row * depth], &rounded[row * depth] + depth, &inputs[row * depth]);
      for (int64_t column = 0; column < width; ++column) {
        double expected = Expected(rounded, stays ? weights : columns, GetParam(), row, column);
        expected += static_cast<double>(one[column]) + other[column];
        if (relu) expected = std::max(0.0, expected);
        EXPECT_NEAR(out[row * width + column], expected, 1e-4) << row << " " << column;
      }
    }
  }
}

TEST_P(Int8ProductTest, ARowsBitsDoNotDependOnItsNeighbours) {
  const auto [rows, depth, width] = GetParam();
  Floats inputs = Random(rows * depth, 1);
  inputs[rows / 2 * depth] = kNan;  // one row stays float32
  const Floats weights = Random(depth * width, 2);
  const Floats together = Multiply(inputs, weights, GetParam());
  for (int64_t row = 0; row < rows; ++row) {
    const Floats own(inputs.begin() + row * depth, inputs.begin() + (row + 1) * depth);
    const Floats alone = Multiply(own, weights, {1, depth, width});
    EXPECT_TRUE(HasSameBits(alone.data(), &together[row * width], width)) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Int8ProductTest,
                         ::testing::Values(Shape{1, 8, 1}, Shape{2, 9, 5}, Shape{6, 16, 64},
                                           Shape{7, 17, 65}, Shape{13, 33, 100}, Shape{5, 660, 256},
                                           Shape{12, 31, 16}, Shape{3, 34, 129}));

TEST_F(Int8ProductTest, TheLargestSumsFitAndLoseNoBit) {
  const Shape shape = {1, kMostInt8Depth, 1};
  const Floats inputs(shape.depth, 255.0f);
  for (const float weight : {127.0f, -127.0f}) {
    const Floats out = Multiply(inputs, Floats(shape.depth, weight), shape);
    EXPECT_EQ(out[0], weight * 255.0f * kMostInt8Depth);
  }
}

// Rows that are multiplied in float32 beside others that are rounded.
TEST_F(Int8ProductTest, WhatCannotBeRoundedIsMultipliedAsItIs) {
  const Floats hostile[] = {{kNan, 1, 1, 1},
                            {1, 1, kInfinity, 1},
                            {1, -kInfinity, 1, kInfinity},
                            {kInfinity, 0, 0, 0},
                            {kHuge, -kHuge, 1, 1},
                            {kDenormal, 0, -kDenormal, kDenormal},
                            {1e6f, 1e-3f, 2e-3f, 3e-3f}};
  const Floats plain = {1, 2, 3, 4}, weights = {1, 0.5f, -1, 1};
  for (const Floats& row : hostile) {
    Floats inputs = plain;
    inputs.insert(inputs.end(), row.begin(), row.end());
    inputs.insert(inputs.end(), plain.begin(), plain.end());
    for (const bool relu : {false, true}) {
      const Floats out = Multiply(inputs, weights, {3, 4, 1}, {}, relu);
      EXPECT_NEAR(out[0], 3, 0.05);
      EXPECT_EQ(out[0], out[2]);
      float expected = 0;
      for (int i = 0; i < 4; ++i) expected = std::fma(row[i], weights[i], expected);
      if (relu && expected < 0) expected = 0;
      ExpectClose(out[1], expected);
    }
  }
}

TEST_F(Int8ProductTest, RowsOfZerosGiveWhatIsAdded) {
  const Floats added = {0.25f};
  const Floats out = Multiply({0, 0, -0.0f, -0.0f}, {1, 2}, {2, 2, 1}, {added.data()});
  EXPECT_EQ(out, (Floats{0.25f, 0.25f}));
}

// Each step is a number of its own; their product is none, or loses its precision.
TEST_F(Int8ProductTest, RowsWhoseStepsDoNotFitTheWeightsStayAsTheyAre) {
  const Floats large = {3e38f, 0, 0, 0}, weights = {0, 4e4f, 4e4f, 4e4f};
  EXPECT_EQ(Multiply(large, weights, {1, 4, 1})[0], 0);
  const Floats small = {1e-32f, 2e-32f, 3e-32f, 4e-32f}, tiny = {1e-4f, 1e-4f, 1e-4f, 1e-4f};
  EXPECT_NEAR(Multiply(small, tiny, {1, 4, 1})[0] / 1e-35f, 1, 0.01);
}

TEST_F(Int8ProductTest, WithoutRowsNothingIsWritten) {
  EXPECT_TRUE(Multiply({}, Random(64, 1), {0, 16, 4}).empty());
}

TEST_F(Int8ProductTest, WeightsThatCannotBeRoundedAreMultipliedAsTheyAre) {
  const Shape shape = {7, 20, 3};
  const Floats inputs = Random(shape.rows * shape.depth, 1);
  for (const float value : {kNan, kInfinity, -kInfinity, 1e6f}) {
    Floats weights = Random(shape.depth * shape.width, 2);
    weights[4] = value;  // of column 1
    EXPECT_FALSE(Int8Weights(weights.data(), shape.depth, shape.width).is_rounded());
    const Floats out = Multiply(inputs, weights, shape);
    for (int64_t row = 0; row < shape.rows; ++row) {
      for (int64_t column = 0; column < shape.width; ++column) {
        ExpectClose(out[row * shape.width + column], Expected(inputs, weights, shape, row, column));
      }
    }
  }
}

}  // namespace
}  // namespace colcast::engine
