// The tile of an output matrix that packed products compute in registers.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PRODUCT_BLOCK_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PRODUCT_BLOCK_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"

namespace colcast::engine {

inline constexpr int kLanes = 16;                       // sums per vector
inline constexpr int kVectors = 4;                      // per row of a block
inline constexpr int64_t kColumns = kVectors * kLanes;  // per block
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
  uint16_t masks[kVectors];    // of the columns that exist
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PRODUCT_BLOCK_H_
