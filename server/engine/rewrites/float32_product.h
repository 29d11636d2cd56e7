// The product of some rows and a block of weights, all float32, for CPUs with AVX-512.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_FLOAT32_PRODUCT_H_
#define COLCAST_SERVER_ENGINE_REWRITES_FLOAT32_PRODUCT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "server/engine/rewrites/product_block.h"

namespace colcast::engine {

// A row of the inputs, and where the block's columns of its output begin.
struct RowToMultiply {
  const float* input;
  float* out;
};

// Sets out = activation(input * weights + what is added). `weights` has `depth` rows, the beginning
// of one `stride` floats behind that of another. A row's sums do not depend on the others.
void MultiplyFloat32(absl::Span<const RowToMultiply> rows, int64_t depth, const float* weights,
                     int64_t stride, const ProductBlock& block, bool relu);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_FLOAT32_PRODUCT_H_
