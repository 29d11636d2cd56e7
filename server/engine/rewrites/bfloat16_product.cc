#include "server/engine/rewrites/bfloat16_product.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "tensorflow/core/platform/bfloat16.h"

// Function attributes enable newer instructions here, since the engine is compiled for every CPU on
// which TensorFlow's wheel runs.
#define COLCAST_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace colcast::engine {

namespace {

// Rounds a row and pads it with 0 to an even number of values.
COLCAST_BFLOAT16 void RoundRow(const float* row, int64_t depth, uint16_t* rounded) {
  int64_t i = 0;
  for (; i + kLanes <= depth; i += kLanes) {
    const __m256bh half = _mm512_cvtneps_pbh(_mm512_loadu_ps(row + i));
    std::memcpy(rounded + i, &half, sizeof(half));
  }
  if (i == depth) return;
  const auto rest = static_cast<__mmask16>((1u << (depth - i)) - 1);
  const __m256bh half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(rest, row + i));
  std::memcpy(rounded + i, &half, (depth - i + 1) / 2 * 2 * sizeof(uint16_t));
}

// Computes kCount rows of a block of the output, which is `width` wide, from rows of `inputs` with
// `pairs` pairs each.
template <int kCount>
COLCAST_BFLOAT16 void MultiplyRows(const uint16_t* inputs, int64_t pairs, const uint16_t* weights,
                                   const ProductBlock& block, bool relu, float* out,
                                   int64_t width) {
  __m512 sums[kCount][kVectors];
  for (int row = 0; row < kCount; ++row) {
    for (int v = 0; v < kVectors; ++v) sums[row][v] = _mm512_loadu_ps(block.start + v * kLanes);
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    __m512bh columns[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = (__m512bh)_mm512_loadu_si512(weights + (pair * kVectors + v) * 2 * kLanes);
    }
    for (int row = 0; row < kCount; ++row) {
      int32_t both;
      std::memcpy(&both, inputs + 2 * (row * pairs + pair), sizeof(both));
      const auto repeated = (__m512bh)_mm512_set1_epi32(both);
      for (int v = 0; v < kVectors; ++v) {
        sums[row][v] = _mm512_dpbf16_ps(sums[row][v], repeated, columns[v]);
      }
    }
  }
  const __m512 least = relu ? _mm512_setzero_ps() : _mm512_set1_ps(-__builtin_inff());
  for (int row = 0; row < kCount; ++row) {
    for (int v = 0; v < kVectors; ++v) {
      // Keeps NaN: for operands that cannot be compared, max returns the second.
      _mm512_mask_storeu_ps(out + row * width + v * kLanes, block.masks[v],
                            _mm512_maskz_max_ps(block.masks[v], least, sums[row][v]));
    }
  }
}

void MultiplyBlock(const uint16_t* inputs, int64_t rows, int64_t pairs, const uint16_t* weights,
                   const ProductBlock& block, bool relu, float* out, int64_t width) {
  constexpr decltype(&MultiplyRows<1>) kMultiply[] = {MultiplyRows<1>, MultiplyRows<2>,
                                                      MultiplyRows<3>, MultiplyRows<4>,
                                                      MultiplyRows<5>, MultiplyRows<6>};
  for (int64_t row = 0; row < rows; row += kRows) {
    const auto count = std::min<int64_t>(kRows, rows - row);
    kMultiply[count - 1](inputs + 2 * pairs * row, pairs, weights, block, relu, out + row * width,
                         width);
  }
}

}  // namespace

bool HasBfloat16Products() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bf16");
}

Bfloat16Weights::Bfloat16Weights(const float* weights, int64_t depth, int64_t width)
    : depth_(depth), width_(width) {
  const int64_t blocks = (width + kColumns - 1) / kColumns;
  packed_.assign(blocks * pairs() * 2 * kColumns, 0);
  for (int64_t row = 0; row < depth; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const auto rounded = static_cast<tensorflow::bfloat16>(weights[row * width + column]);
      const int64_t pair = column / kColumns * pairs() + row / 2;
      std::memcpy(&packed_[(pair * kColumns + column % kColumns) * 2 + row % 2], &rounded,
                  sizeof(rounded));
    }
  }
}

void Bfloat16Weights::Multiply(const float* inputs, int64_t rows,
                               absl::Span<const float* const> added, bool relu, float* out) const {
  thread_local std::vector<uint16_t> rounded;
  rounded.resize(rows * pairs() * 2);
  for (int64_t row = 0; row < rows; ++row) {
    RoundRow(inputs + row * depth_, depth_, rounded.data() + row * pairs() * 2);
  }
  for (int64_t column = 0; column < width_; column += kColumns) {
    MultiplyBlock(rounded.data(), rows, pairs(), packed_.data() + column * pairs() * 2,
                  ProductBlock(column, width_, added), relu, out + column, width_);
  }
}

}  // namespace colcast::engine
