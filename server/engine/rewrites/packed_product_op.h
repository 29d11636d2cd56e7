// The op ColcastBfloat16Product: a MatMul and the ops after it, with weights that are rounded and
// packed. It exists only in the server; a SavedModel never contains it.
//
// Inputs: `x` [rows, depth]; `weights`, a matrix whose rows [first_row, first_row + depth) are
// used; `added`, each [width] or [1, width]; all float32. Attributes: `first_row`, `depth`, `relu`,
// and `makes_nan_zero` for the Relu. Output: activation(x * weights + the sum of `added`).
//
// The first run packs the weights, and so does the first run after an update of the variable. The
// op keeps a reference to the tensor that it packed, so TensorFlow cannot change the values in
// place, and an update creates another tensor. Errors are those of MatMul and BiasAdd.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace colcast::engine {

// The tile of an output matrix that packed products compute in registers.
inline constexpr int kLanes = 16;                       // sums per vector
inline constexpr int kVectors = 4;                      // vectors per row of a block
inline constexpr int64_t kColumns = kVectors * kLanes;  // columns per block
// Rows whose sums for one block fit into registers.
inline constexpr int kRows = 6;

// A block of the output's columns. Packed weights are 0 beyond the last column.
struct ProductBlock {
  // The block that begins at `column`. Each of `added` has one value per column of a matrix `width`
  // wide.
  ProductBlock(int64_t column, int64_t width, absl::Span<const float* const> added) {
    const int64_t columns = std::min(kColumns, width - column);
    for (const float* const values : added) {
      for (int64_t i = 0; i < columns; ++i) start[i] += values[column + i];
    }
    for (int v = 0; v < kVectors; ++v) {
      masks[v] =
          static_cast<uint16_t>((1u << std::clamp<int64_t>(columns - v * kLanes, 0, kLanes)) - 1);
    }
  }

  float start[kColumns] = {};  // the sum of the added rows, from which the products' sums start
  uint16_t masks[kVectors];    // bits of the columns that exist
};

// Whether this CPU has the instructions that everything else in this file needs. Except for the
// op's name, builds for other processors than x86 contain nothing else of it.
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

// The op's name. Calling this function links the op's registration in.
const char* Bfloat16ProductOpName();

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PACKED_PRODUCT_OP_H_
