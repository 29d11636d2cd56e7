// The product of a float32 matrix and one of weights that was rounded to int8 and packed once.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_INT8_PRODUCT_H_
#define COLCAST_SERVER_ENGINE_REWRITES_INT8_PRODUCT_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/rewrites/int8_rounding.h"

namespace colcast::engine {

// Whether this machine has the instructions; nothing else of this file may run without.
bool HasInt8Products();

// The most rows of weights whose sums surely fit into 32 bits.
inline constexpr int64_t kMostInt8Depth = 65536;

// Weights have a step for each column; inputs have a step and a zero for each row, found when it
// is multiplied. A row that is better not rounded (int8_rounding.h) is multiplied in float32, and
// so is every row if a column of the weights is better not rounded.
class Int8Weights {
 public:
  // Rounds a row-major matrix, `depth` rows of `width`, at most kMostInt8Depth. Multiply reads it,
  // too: it must outlive this.
  Int8Weights(const float* weights, int64_t depth, int64_t width);

  // Whether rows are rounded at all.
  bool is_rounded() const { return is_rounded_; }

  // Sets out = activation(inputs * weights + the sum of `added`), with inputs of `rows` rows of
  // `depth` values, and `added` one value for each column. What was rounded is summed in integers,
  // without error. A row's sums do not depend on the rows beside it. `out` overlaps nothing.
  void Multiply(const float* inputs, int64_t rows, absl::Span<const float* const> added, bool relu,
                float* out) const;

 private:
  int64_t quads() const { return (depth_ + 3) / 4; }
  // Whether a row's step times any column's is a number of full precision.
  bool StepsFit(float step) const;

  const float* const weights_;
  const int64_t depth_;
  const int64_t width_;
  bool is_rounded_ = true;
  // By blocks of columns; in a block by four rows; then by column, the four together.
  std::vector<int8_t> packed_;
  // Of each column, filled up to whole blocks: its step, and the sum of its rounded weights.
  std::vector<float> steps_;
  std::vector<int32_t> sums_;
  float least_step_ = std::numeric_limits<float>::infinity();  // of those that are not 0
  float largest_step_ = 0;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_INT8_PRODUCT_H_
