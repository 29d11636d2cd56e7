// The product of a float32 matrix and one of weights that was rounded to bfloat16 and packed once.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_BFLOAT16_PRODUCT_H_
#define COLCAST_SERVER_ENGINE_REWRITES_BFLOAT16_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace colcast::engine {

// Whether this machine has the instructions; nothing else of this file may run without.
bool HasBfloat16Products();

class Bfloat16Weights {
 public:
  // Rounds a row-major matrix, `depth` rows of `width`, to the nearest bfloat16.
  Bfloat16Weights(const float* weights, int64_t depth, int64_t width);

  // Sets out = activation(inputs * weights + the sum of `added`), with inputs of `rows` rows of
  // `depth` values, rounded to bfloat16, sums in float32, and `added` one value for each column.
  // A row's sums do not depend on the rows beside it. `out` overlaps nothing.
  void Multiply(const float* inputs, int64_t rows, absl::Span<const float* const> added, bool relu,
                float* out) const;

 private:
  int64_t pairs() const { return (depth_ + 1) / 2; }

  const int64_t depth_;
  const int64_t width_;
  // By blocks of columns; in a block by pairs of rows; then by column, both of the pair together.
  std::vector<uint16_t> packed_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_BFLOAT16_PRODUCT_H_
