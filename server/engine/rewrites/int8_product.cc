#include "server/engine/rewrites/int8_product.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "server/engine/rewrites/float32_product.h"
#include "server/engine/rewrites/product_block.h"

// The engine is compiled for any CPU that TensorFlow's wheel runs on; these functions are for more.
#define COLCAST_INT8 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace colcast::engine {
namespace {

// The weights of a block of columns.
struct BlockWeights {
  const int8_t* packed;
  const float* steps;
  const int32_t* sums;
};

// Rounded rows, `quads` times four values each.
struct RoundedRows {
  const uint8_t* values;
  const Rounding* roundings;
  int64_t quads;
};

// Integers of some rows of a block.
using Sums = int32_t[kRows][kColumns];

// Multiplies the first kCount rows. What follows is another function, for GCC would keep the sums
// in memory here.
template <int kCount>
COLCAST_INT8 void SumRows(const RoundedRows& rows, const int8_t* weights, Sums& out) {
  __m512i sums[kCount][kVectors];
#pragma GCC unroll 6
  for (int row = 0; row < kCount; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[row][v] = _mm512_setzero_si512();
  }
  for (int64_t quad = 0; quad < rows.quads; ++quad) {
    __m512i columns[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = _mm512_loadu_si512(weights + (quad * kVectors + v) * 4 * kLanes);
    }
#pragma GCC unroll 6
    for (int row = 0; row < kCount; ++row) {
      int32_t four;
      std::memcpy(&four, rows.values + 4 * (row * rows.quads + quad), sizeof(four));
      const __m512i repeated = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[row][v] = _mm512_dpbusd_epi32(sums[row][v], repeated, columns[v]);
      }
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < kCount; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(&out[row][v * kLanes], sums[row][v]);
  }
}

// Writes a row of a block from its sums.
COLCAST_INT8 void WriteRow(const int32_t* sums, const Rounding& rounding,
                           const BlockWeights& weights, const ProductBlock& block, bool relu,
                           float* out) {
  const __m512i zero = _mm512_set1_epi32(rounding.zero);
  const __m512 step = _mm512_set1_ps(rounding.step);
  const __m512 least = relu ? _mm512_setzero_ps() : _mm512_set1_ps(-__builtin_inff());
  for (int i = 0; i < kColumns; i += kLanes) {
    const __m512i zeros = _mm512_mullo_epi32(_mm512_loadu_si512(weights.sums + i), zero);
    const __m512i whole = _mm512_sub_epi32(_mm512_loadu_si512(sums + i), zeros);
    const __m512 steps = _mm512_mul_ps(_mm512_loadu_ps(weights.steps + i), step);
    const __m512 result = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, whole), steps,
                                          _mm512_loadu_ps(block.start + i));
    const __mmask16 mask = block.masks[i / kLanes];
    _mm512_mask_storeu_ps(out + i, mask, _mm512_maskz_max_ps(mask, least, result));
  }
}

// Writes `count` rows of a block, `width` floats apart.
void MultiplyBlock(RoundedRows rows, int64_t count, const BlockWeights& weights,
                   const ProductBlock& block, bool relu, float* out, int64_t width) {
  constexpr decltype(&SumRows<1>) kSum[] = {SumRows<1>, SumRows<2>, SumRows<3>,
                                            SumRows<4>, SumRows<5>, SumRows<6>};
  Sums sums;
  for (; count > 0; count -= kRows) {
    const auto some = static_cast<int>(std::min<int64_t>(kRows, count));
    kSum[some - 1](rows, weights.packed, sums);
    for (int row = 0; row < some; ++row) {
      WriteRow(sums[row], rows.roundings[row], weights, block, relu, out + row * width);
    }
    rows.values += 4 * rows.quads * kRows;
    rows.roundings += kRows;
    out += kRows * width;
  }
}

}  // namespace

bool HasInt8Products() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

Int8Weights::Int8Weights(const float* weights, int64_t depth, int64_t width)
    : weights_(weights), depth_(depth), width_(width) {
  const int64_t columns = (width + kColumns - 1) / kColumns * kColumns;
  packed_.assign(columns * quads() * 4, 0);
  steps_.assign(columns, 0);
  sums_.assign(columns, 0);
  std::vector<int8_t> rounded(depth);
  for (int64_t column = 0; column < width && is_rounded_; ++column) {
    is_rounded_ = RoundWeights(weights + column, depth, width, &steps_[column], rounded.data());
    largest_step_ = std::max(largest_step_, steps_[column]);
    if (steps_[column] > 0) least_step_ = std::min(least_step_, steps_[column]);
    sums_[column] = std::accumulate(rounded.begin(), rounded.end(), 0);
    int8_t* const packed =
        &packed_[(column / kColumns * quads() * kColumns + column % kColumns) * 4];
    for (int64_t i = 0; i < depth; ++i) packed[i / 4 * kColumns * 4 + i % 4] = rounded[i];
  }
}

bool Int8Weights::StepsFit(float step) const {
  constexpr float kLeast = 1e-36f;
  return step == 0 || (std::isfinite(step * largest_step_) && step * least_step_ >= kLeast);
}

void Int8Weights::Multiply(const float* inputs, int64_t rows, absl::Span<const float* const> added,
                           bool relu, float* out) const {
  thread_local std::vector<uint8_t> rounded;
  thread_local std::vector<Rounding> roundings;
  thread_local std::vector<RowToMultiply> floats;
  rounded.resize(rows * quads() * 4 + kRoundingSlack);
  roundings.resize(rows);
  floats.clear();
  for (int64_t row = 0; row < rows; ++row) {
    const float* const input = inputs + row * depth_;
    if (!is_rounded_ ||
        !RoundRow(input, depth_, &roundings[row], rounded.data() + row * quads() * 4) ||
        !StepsFit(roundings[row].step)) {
      floats.push_back({input, out + row * width_});
    }
  }
  const bool has_rounded = static_cast<int64_t>(floats.size()) < rows;
  for (int64_t column = 0; column < width_; column += kColumns) {
    const ProductBlock block(column, width_, added);
    // Rows that were not rounded are overwritten.
    if (has_rounded) {
      MultiplyBlock({rounded.data(), roundings.data(), quads()}, rows,
                    {&packed_[column * quads() * 4], &steps_[column], &sums_[column]}, block, relu,
                    out + column, width_);
    }
    MultiplyFloat32(floats, depth_, weights_ + column, width_, block, relu);
    for (RowToMultiply& row : floats) row.out += kColumns;
  }
}

}  // namespace colcast::engine
