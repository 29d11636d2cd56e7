// The tile of an output matrix that is computed in registers: what packed products share.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_PRODUCT_BLOCK_H_
#define COLCAST_SERVER_ENGINE_REWRITES_PRODUCT_BLOCK_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"

namespace colcast::engine {

inline constexpr int kLanes = 16;                       // sums in a vector
inline constexpr int kVectors = 4;                      // of a block's columns
inline constexpr int64_t kColumns = kVectors * kLanes;  // of a block
inline constexpr int kRows = 6;                         // whose sums of a block fit into registers

// A block of columns of the output. Packed weights are 0 in columns that are missing.
struct ProductBlock {
  // Of those from `column` on; `added` has one value for each column of a matrix `width` wide.
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

  float start[kColumns] = {};  // the sum of what is added
  uint16_t masks[kVectors];    // columns that there are
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_PRODUCT_BLOCK_H_
