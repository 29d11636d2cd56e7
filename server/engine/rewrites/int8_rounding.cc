#include "server/engine/rewrites/int8_rounding.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

// The engine is compiled for any CPU that TensorFlow's wheel runs on; these functions are for more.
#define COLCAST_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace colcast::engine {
namespace {

constexpr int kLanes = 16;
constexpr __mmask16 kAll = 0xffff;  // GCC takes what forms without a mask do not set for a mistake
constexpr float kLargestInput = 255;
constexpr float kLargestWeight = 127;
constexpr float kLeastStep = 1e-36f;     // its inverse is finite
constexpr float kSmall = 12.5f;          // in steps
constexpr int kNanAndInfinities = 0x99;  // classes of floats

// Whether fewer than half of the values that are not 0 are small.
bool AreFewSmall(int64_t small, int64_t filled) { return filled == 0 || 2 * small < filled; }

// What is left of a row behind whole vectors, and 0.
COLCAST_AVX512 inline __m512 LoadRest(const float* values, int64_t left) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << left) - 1), values);
}

// The least and the largest value of a row and 0.
struct Range {
  COLCAST_AVX512 inline void Add(__m512 values) {
    least = _mm512_maskz_min_ps(kAll, least, values);
    largest = _mm512_maskz_max_ps(kAll, largest, values);
    no_numbers |= _mm512_fpclass_ps_mask(values, kNanAndInfinities);
  }

  __m512 least;
  __m512 largest;
  unsigned no_numbers;
};

// Whether a row has a step, and that.
COLCAST_AVX512 bool FindStep(const float* row, int64_t depth, Rounding* rounding) {
  Range range = {_mm512_setzero_ps(), _mm512_setzero_ps(), 0};
  int64_t i = 0;
  for (; i + kLanes <= depth; i += kLanes) range.Add(_mm512_loadu_ps(row + i));
  if (i < depth) range.Add(LoadRest(row + i, depth - i));
  if (range.no_numbers != 0) return false;
  float lows[kLanes], highs[kLanes];
  _mm512_storeu_ps(lows, range.least);
  _mm512_storeu_ps(highs, range.largest);
  const float low = *std::min_element(lows, lows + kLanes);
  const float high = *std::max_element(highs, highs + kLanes);
  *rounding = {0, 0};
  if (low == 0 && high == 0) return true;
  const float step = (high - low) / kLargestInput;
  if (step < kLeastStep || std::isinf(step)) return false;
  *rounding = {step, static_cast<int32_t>(std::nearbyint(-low * (1 / step)))};
  return true;
}

// Rounds vectors of a row, and counts.
struct Rounder {
  COLCAST_AVX512 inline void Round(__m512 values, uint8_t* rounded) {
    const __m512 steps = _mm512_mul_ps(values, inverse);
    const unsigned is_filled = _mm512_cmp_ps_mask(values, _mm512_setzero_ps(), _CMP_NEQ_OQ);
    filled += __builtin_popcount(is_filled);
    small += __builtin_popcount(_mm512_mask_cmp_ps_mask(is_filled, _mm512_abs_ps(steps),
                                                        _mm512_set1_ps(kSmall), _CMP_LT_OQ));
    // Nothing is below 0, for `zero` is the least value's, rounded the same way; all is saturated.
    const __m512i whole = _mm512_add_epi32(_mm512_maskz_cvtps_epi32(kAll, steps), zero);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rounded),
                     _mm512_maskz_cvtusepi32_epi8(kAll, whole));
  }

  __m512 inverse;  // of the step
  __m512i zero;
  int64_t filled;
  int64_t small;
};

}  // namespace

COLCAST_AVX512 bool RoundRow(const float* row, int64_t depth, Rounding* rounding,
                             uint8_t* rounded) {
  if (!FindStep(row, depth, rounding)) return false;
  Rounder rounder = {_mm512_set1_ps(rounding->step > 0 ? 1 / rounding->step : 0),
                     _mm512_set1_epi32(rounding->zero), 0, 0};
  int64_t i = 0;
  for (; i + kLanes <= depth; i += kLanes) rounder.Round(_mm512_loadu_ps(row + i), rounded + i);
  if (i < depth) rounder.Round(LoadRest(row + i, depth - i), rounded + i);
  return AreFewSmall(rounder.small, rounder.filled);
}

bool RoundWeights(const float* weights, int64_t depth, int64_t stride, float* step,
                  int8_t* rounded) {
  float largest = 0;
  for (int64_t i = 0; i < depth; ++i) {
    const float weight = weights[i * stride];
    if (!std::isfinite(weight)) return false;
    largest = std::max(largest, std::abs(weight));
  }
  *step = largest / kLargestWeight;
  if (largest > 0 && *step < kLeastStep) return false;
  int64_t filled = 0, small = 0;
  for (int64_t i = 0; i < depth; ++i) {
    const float steps = largest > 0 ? weights[i * stride] / *step : 0;
    rounded[i] = static_cast<int8_t>(std::nearbyint(steps));
    filled += weights[i * stride] != 0;
    small += weights[i * stride] != 0 && std::abs(steps) < kSmall;
  }
  return AreFewSmall(small, filled);
}

}  // namespace colcast::engine
