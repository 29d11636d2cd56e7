// Multiplies a float32 matrix by weights that were rounded to bfloat16 and packed once.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_BFLOAT16_PRODUCT_H_
#define COLCAST_SERVER_ENGINE_REWRITES_BFLOAT16_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace colcast::engine {

// Whether this machine has the instructions. Without them nothing else in this file may run.
bool HasBfloat16Products();

class Bfloat16Weights {
 public:
  // Rounds a row-major matrix, `depth` rows of `width` values, to the nearest bfloat16.
  Bfloat16Weights(const float* weights, int64_t depth, int64_t width);

  // Computes out = activation(inputs * weights + the sum of `added`). Inputs, `rows` rows of
  // `depth` values, are rounded to bfloat16; sums are float32; each of `added` has one value per
  // column. A row's result does not depend on the other rows. `out` must not overlap anything.
  void Multiply(const float* inputs, int64_t rows, absl::Span<const float* const> added, bool relu,
                float* out) const;

 private:
  int64_t pairs() const { return (depth_ + 1) / 2; }

  const int64_t depth_;
  const int64_t width_;
  // Ordered by block of columns; within a block by pair of rows; then by column, with both values
  // of the pair.
  std::vector<uint16_t> packed_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_BFLOAT16_PRODUCT_H_
