#include "server/engine/rewrites/rounded_rows.h"

#include <algorithm>
#include <cmath>

#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;

constexpr float kLargest = 127;
constexpr float kMostLost = 0.02f;
// Rounding may change a value of fewer steps than this by more than 3 %; a step is the scale.
constexpr float kSmall = 16;
constexpr float kLeastScale = 1e-36f;        // so that its inverse is finite
constexpr uint32_t kInfinity = 0x7f800000u;  // these bits and those above are infinity and NaN
constexpr uint16_t kKept = 0x7fc0;           // marks a row that keeps its floats

COLCAST_INLINE uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Whether rounding loses little of a row's small values, relative to the sum of all values but the
// largest.
COLCAST_INLINE bool IsClose(const float* values, int64_t width, const char* rounded, float scale) {
  float all = 0, largest = 0, lost = 0;
  for (int64_t i = 0; i < width; ++i) {
    const float value = std::abs(values[i] / scale);
    const float left =
        std::abs(value - std::abs(static_cast<float>(static_cast<int8_t>(rounded[i]))));
    all += value;
    largest = std::max(largest, value);
    lost += value < kSmall ? left : 0;
  }
  return lost <= kMostLost * (all - largest);
}

// Returns false for a row that cannot be rounded.
COLCAST_INLINE bool RoundRow(const float* values, int64_t width, char* row) {
  // largest value as bits, which sort like the positive floats they represent
  uint32_t largest = 0;
  for (int64_t i = 0; i < width; ++i) {
    largest = std::max(largest, BitsOf(values[i]) & 0x7fffffffu);
  }
  const float least = largest < kInfinity ? FromBits(largest) / kLargest : 0;
  const bool fits = largest == 0 || least >= kLeastScale;
  const auto scale = static_cast<uint16_t>((BitsOf(least) + 0xffffu) >> 16);  // rounded up
  std::memcpy(row, &scale, sizeof(scale));
  const float inverse = fits && largest > 0 ? 1 / FromHalf(row) : 0;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the lower bits.
  for (int64_t i = 0; i < width; ++i) {
    row[kScaleBytes + i] = static_cast<char>(BitsOf(values[i] * inverse + 12582912.0f));
  }
  return fits && (largest == 0 || IsClose(values, width, row + kScaleBytes, FromHalf(row)));
}

struct Matrix {
  const float* values;
  int64_t rows, width;
};

// Rounds rows, and adds to `kept` the numbers of rows that cannot be rounded.
COLCAST_INLINE void RoundRows(const Matrix& from, char* packed, std::vector<int64_t>* kept) {
  for (int64_t i = 0; i < from.rows; ++i, packed += from.width + kScaleBytes) {
    if (RoundRow(from.values + i * from.width, from.width, packed)) continue;
    std::memcpy(packed, &kKept, sizeof(kKept));
    kept->push_back(i);
  }
}

void RoundAny(const Matrix& from, char* packed, std::vector<int64_t>* kept) {
  RoundRows(from, packed, kept);
}
COLCAST_AVX2 void RoundAvx2(const Matrix& from, char* packed, std::vector<int64_t>* kept) {
  RoundRows(from, packed, kept);
}
COLCAST_AVX512 void RoundAvx512(const Matrix& from, char* packed, std::vector<int64_t>* kept) {
  RoundRows(from, packed, kept);
}

}  // namespace

Instructions WidestInstructions() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Instructions::kAny;
  const bool is_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return is_512 ? Instructions::kAvx512 : Instructions::kAvx2;
}

RoundedRows RoundedRows::Of(DataType type, const float* values, int64_t rows, int64_t width,
                            Instructions instructions) {
  const int64_t bytes = rows * ValuesInRow(type, width) * DataTypeSize(type);
  const std::shared_ptr<char> packed(new char[bytes], std::default_delete<char[]>());
  RoundedRows rounded{type, packed, {}};
  if (type == tensorflow::DT_BFLOAT16) {
    std::transform(values, values + rows * width,
                   reinterpret_cast<tensorflow::bfloat16*>(packed.get()),
                   [](float value) { return tensorflow::bfloat16(value); });
    return rounded;
  }
  const auto round = instructions == Instructions::kAvx512 ? RoundAvx512
                     : instructions == Instructions::kAvx2 ? RoundAvx2
                                                           : RoundAny;
  std::vector<int64_t> kept;
  round({values, rows, width}, packed.get(), &kept);
  for (const int64_t id : kept) {
    rounded.kept[id].assign(values + id * width, values + (id + 1) * width);
  }
  return rounded;
}

int64_t RoundedRows::ValuesInRow(DataType type, int64_t width) {
  return type == tensorflow::DT_INT8 ? width + static_cast<int64_t>(kScaleBytes) : width;
}

}  // namespace colcast::engine
