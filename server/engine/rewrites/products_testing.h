// What tests of packed products share.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PRODUCTS_TESTING_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PRODUCTS_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace colcast::engine {

using Floats = std::vector<float>;

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kHuge = std::numeric_limits<float>::max();
inline constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

inline Floats Random(int64_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

struct Shape {
  int64_t rows, depth, width;
};

// Multiplies; what lies behind the output must stay as it is.
template <typename Weights>
Floats MultiplyBy(const Floats& inputs, const Floats& weights, const Shape& shape,
                  const std::vector<const float*>& added, bool relu) {
  Floats out(shape.rows * shape.width + 64, 7);
  Weights(weights.data(), shape.depth, shape.width)
      .Multiply(inputs.data(), shape.rows, added, relu, out.data());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[shape.rows * shape.width + i], 7);
  out.resize(shape.rows * shape.width);
  return out;
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PRODUCTS_TESTING_H_
