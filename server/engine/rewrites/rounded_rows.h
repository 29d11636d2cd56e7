// Rows of an embedding table in a smaller type: in int8 with one scale per row (a quarter of the
// memory plus two bytes per row), or in bfloat16 (half of it).
#ifndef COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_ROWS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_ROWS_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tensorflow/core/framework/types.pb.h"

// Enable newer instructions for individual functions, because the engine must run on every CPU that
// TensorFlow's wheel supports.
#define COLCAST_AVX2 __attribute__((target("avx2,fma")))
#define COLCAST_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define COLCAST_INLINE inline __attribute__((always_inline))

namespace colcast::engine {

// The widest instruction set to use.
enum class Instructions { kAny, kAvx2, kAvx512 };

Instructions WidestInstructions();

struct RoundedRows {
  // Rounds a row-major matrix to a type. DT_BFLOAT16 rounds to nearest even, as TensorFlow casts.
  // In DT_INT8 a value changes by at most 1/251 of the largest in its row. A row keeps its floats
  // if it has NaN or infinity, if it is too small for a scale, or if rounding its small values
  // would lose more than 2 % of the sum of all values but the largest, as when one value is far
  // above the others.
  static RoundedRows Of(tensorflow::DataType type, const float* values, int64_t rows, int64_t width,
                        Instructions instructions);

  // The number of values in a stored row of `width` floats, which includes the scale.
  static int64_t ValuesInRow(tensorflow::DataType type, int64_t width);

  tensorflow::DataType type;
  // The values of each row; in int8 the scale, the upper half of a float, precedes them.
  std::shared_ptr<const char> packed;
  // Rows of int8 that keep their floats; their scale is NaN.
  std::unordered_map<int64_t, std::vector<float>> kept;
};

inline constexpr size_t kScaleBytes = 2;

COLCAST_INLINE float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The float whose upper half is `stored`: a row's scale, or a value in bfloat16.
COLCAST_INLINE float FromHalf(const char* stored) {
  uint16_t half;
  std::memcpy(&half, stored, sizeof(half));
  return FromBits(static_cast<uint32_t>(half) << 16);
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_ROUNDED_ROWS_H_
