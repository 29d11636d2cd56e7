#include "server/engine/rewrites/float32_product.h"

#include <immintrin.h>

// The engine is compiled for any CPU that TensorFlow's wheel runs on; these functions are for more.
#define COLCAST_AVX512 __attribute__((target("avx512f")))

namespace colcast::engine {
namespace {

template <int kCount>
COLCAST_AVX512 void MultiplyRows(const RowToMultiply* rows, int64_t depth, const float* weights,
                                 int64_t stride, const ProductBlock& block, bool relu) {
  const float* inputs[kCount];
  __m512 sums[kCount][kVectors];
#pragma GCC unroll 6
  for (int row = 0; row < kCount; ++row) {
    inputs[row] = rows[row].input;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[row][v] = _mm512_loadu_ps(block.start + v * kLanes);
  }
  for (int64_t i = 0; i < depth; ++i) {
    __m512 columns[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = _mm512_maskz_loadu_ps(block.masks[v], weights + i * stride + v * kLanes);
    }
#pragma GCC unroll 6
    for (int row = 0; row < kCount; ++row) {
      const __m512 value = _mm512_set1_ps(inputs[row][i]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[row][v] = _mm512_fmadd_ps(value, columns[v], sums[row][v]);
      }
    }
  }
  const __m512 least = relu ? _mm512_setzero_ps() : _mm512_set1_ps(-__builtin_inff());
#pragma GCC unroll 6
  for (int row = 0; row < kCount; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      // A NaN stays: of two values that cannot be compared, max has the second.
      _mm512_mask_storeu_ps(rows[row].out + v * kLanes, block.masks[v],
                            _mm512_maskz_max_ps(block.masks[v], least, sums[row][v]));
    }
  }
}

}  // namespace

void MultiplyFloat32(absl::Span<const RowToMultiply> rows, int64_t depth, const float* weights,
                     int64_t stride, const ProductBlock& block, bool relu) {
  constexpr decltype(&MultiplyRows<1>) kMultiply[] = {MultiplyRows<1>, MultiplyRows<2>,
                                                      MultiplyRows<3>, MultiplyRows<4>,
                                                      MultiplyRows<5>, MultiplyRows<6>};
  for (size_t row = 0; row < rows.size(); row += kRows) {
    const size_t count = std::min<size_t>(kRows, rows.size() - row);
    kMultiply[count - 1](&rows[row], depth, weights, stride, block, relu);
  }
}

}  // namespace colcast::engine
