#include "server/engine/rewrites/rounded_table.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "tensorflow/core/framework/types.h"

// Function attributes enable newer instructions here, since the engine is compiled for every CPU on
// which TensorFlow's wheel runs.
#define COLCAST_AVX2 __attribute__((target("avx2,fma")))
#define COLCAST_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define COLCAST_INLINE inline __attribute__((always_inline))

namespace colcast::engine {
namespace {

using tensorflow::DataType;

constexpr size_t kScaleBytes = 2;
constexpr __mmask16 kAll = 0xffff;
constexpr float kLargest = 127;
constexpr float kMostLost = 0.02f;
// In steps of the scale. Rounding may change a value below this by more than 3 %.
constexpr float kSmall = 16;
constexpr float kLeastScale = 1e-36f;        // so that its inverse is finite
constexpr uint32_t kInfinity = 0x7f800000u;  // these bits and those above are infinity and NaN
constexpr uint16_t kKept = 0x7fc0;           // marks a row that keeps its floats

COLCAST_INLINE float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

COLCAST_INLINE uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// The float whose upper half is stored there: a row's scale, or a value in bfloat16.
COLCAST_INLINE float FromHalf(const char* stored) {
  uint16_t half;
  std::memcpy(&half, stored, sizeof(half));
  return FromBits(static_cast<uint32_t>(half) << 16);
}

// Whether rounding loses little of a row's small values, relative to the row without its largest
// value.
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

// Rounds rows; adds to `kept` the numbers of those that cannot be rounded.
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

// Some rows of a table, beginning at one of its columns.
struct Rows {
  const char* first_column;  // the column's address in row 0 of the table
  const char* table;
  size_t row_bytes;
  absl::Span<const int64_t> ids;
};

void SumAny(const Rows& rows, int64_t columns, float* sums) {
  std::fill_n(sums, columns, 0.0f);
  for (const int64_t id : rows.ids) {
    const float scale = FromHalf(rows.table + id * rows.row_bytes);
    const char* const values = rows.first_column + id * rows.row_bytes;
    for (int64_t i = 0; i < columns; ++i) {
      sums[i] += scale * static_cast<float>(static_cast<int8_t>(values[i]));
    }
  }
}

COLCAST_AVX2 void SumAvx2(const Rows& rows, float* sums) {
  __m256 sum = _mm256_setzero_ps();
  for (const int64_t id : rows.ids) {
    const __m256 scale = _mm256_set1_ps(FromHalf(rows.table + id * rows.row_bytes));
    const auto* const at =
        reinterpret_cast<const __m128i*>(rows.first_column + id * rows.row_bytes);
    const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at)));
    sum = _mm256_fmadd_ps(scale, values, sum);
  }
  _mm256_storeu_ps(sums, sum);
}

template <int kVectors>
COLCAST_AVX512 void SumAvx512(const Rows& rows, float* sums) {
  __m512 sum[kVectors];
  for (__m512& one : sum) one = _mm512_setzero_ps();
  for (const int64_t id : rows.ids) {
    const __m512 scale = _mm512_set1_ps(FromHalf(rows.table + id * rows.row_bytes));
    const auto* const at =
        reinterpret_cast<const __m128i*>(rows.first_column + id * rows.row_bytes);
    for (int v = 0; v < kVectors; ++v) {
      // Uses the masked form, because GCC warns about uninitialized values in the others.
      const __m512i whole = _mm512_maskz_cvtepi8_epi32(kAll, _mm_loadu_si128(at + v));
      const __m512 values = _mm512_maskz_cvtepi32_ps(kAll, whole);
      sum[v] = _mm512_fmadd_ps(scale, values, sum[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(sums + 16 * v, sum[v]);
}

// Copies a single row without arithmetic, so that it keeps NaN, -0 and denormals.
void SumBfloat16(const Rows& rows, int64_t columns, float* sums) {
  const bool is_sum = rows.ids.size() != 1;
  if (is_sum) std::fill_n(sums, columns, 0.0f);
  for (const int64_t id : rows.ids) {
    const char* const values = rows.first_column + id * rows.row_bytes;
    for (int64_t i = 0; i < columns; ++i) {
      const float value = FromHalf(values + sizeof(uint16_t) * i);
      sums[i] = is_sum ? sums[i] + value : value;
    }
  }
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
  const int64_t bytes = rows * RoundedTable::ValuesInRow(type, width) * DataTypeSize(type);
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

RoundedTable::RoundedTable(const float* values, int64_t rows, int64_t width, RoundedRows rounded,
                           Instructions instructions)
    : values_(values),
      rows_(rows),
      width_(width),
      instructions_(instructions),
      rounded_(std::move(rounded)),
      row_bytes_(ValuesInRow(rounded_.type, width) * DataTypeSize(rounded_.type)) {}

int64_t RoundedTable::ValuesInRow(DataType type, int64_t width) {
  return type == tensorflow::DT_INT8 ? width + static_cast<int64_t>(kScaleBytes) : width;
}

bool RoundedTable::IsComplete() const {
  for (int64_t id = 0; id < rows_; ++id) {
    if (IsKept(id) != (rounded_.kept.count(id) > 0)) return false;
  }
  return true;
}

void RoundedTable::Gather(absl::Span<const int64_t> ids, OutputRows output) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kIdsAhead < ids.size()) Prefetch(ids.subspan(i + kIdsAhead, 1));
    SumOne(ids.subspan(i, 1), reinterpret_cast<float*>(output.begin + i * output.stride));
  }
}

void RoundedTable::Sum(absl::Span<const int64_t> ids, int64_t rows, OutputRows output) const {
  if (rows == 0) return;
  const size_t count = ids.size() / rows;
  if (count == 1) return Gather(ids, output);
  for (int64_t i = 0; i < rows; ++i) {
    Prefetch(ids.subspan((i + 1) * count, count));
    SumOne(ids.subspan(i * count, count),
           reinterpret_cast<float*>(output.begin + i * output.stride));
  }
}

void RoundedTable::SumOne(absl::Span<const int64_t> ids, float* sums) const {
  const bool has_kept = !rounded_.kept.empty();
  const auto is_float = [&](int64_t id) { return IsChanged(id) || (has_kept && IsKept(id)); };
  if (std::any_of(ids.begin(), ids.end(), is_float)) return SumWithFloats(ids, sums);
  const char* const packed = rounded_.packed.get();
  if (rounded_.type == tensorflow::DT_BFLOAT16) {
    return SumBfloat16({packed, packed, row_bytes_, ids}, width_, sums);
  }
  Rows rows{packed + kScaleBytes, packed, row_bytes_, ids};
  int64_t column = 0;
  const auto take = [&](auto sum, int64_t columns) {
    for (; column + columns <= width_; column += columns, rows.first_column += columns) {
      sum(rows, sums + column);
    }
  };
  if (instructions_ == Instructions::kAvx512) {
    take(SumAvx512<4>, 64);
    take(SumAvx512<2>, 32);
    take(SumAvx512<1>, 16);
  }
  if (instructions_ != Instructions::kAny) take(SumAvx2, 8);
  if (column < width_) SumAny(rows, width_ - column, sums + column);
}

void RoundedTable::SumWithFloats(absl::Span<const int64_t> ids, float* sums) const {
  // A sum of one row must equal that row, including -0.
  std::fill_n(sums, width_, ids.size() == 1 ? -0.0f : 0.0f);
  std::vector<float> row(width_);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!CopyFloats(ids[i], row.data())) SumOne(ids.subspan(i, 1), row.data());
    for (int64_t column = 0; column < width_; ++column) sums[column] += row[column];
  }
}

bool RoundedTable::IsKept(int64_t id) const {
  return rounded_.type == tensorflow::DT_INT8 &&
         std::isnan(FromHalf(rounded_.packed.get() + id * row_bytes_));
}

bool RoundedTable::CopyFloats(int64_t id, float* row) const {
  const size_t bytes = width_ * sizeof(float);
  if (IsChanged(id)) {  // floats in memory, at any address
    std::memcpy(row, reinterpret_cast<const char*>(values_) + id * static_cast<int64_t>(bytes),
                bytes);
    return true;
  }
  if (!IsKept(id)) return false;
  const auto kept = rounded_.kept.find(id);
  // Not found if the rows are mapped and their file was changed; the run then fails.
  if (kept != rounded_.kept.end()) std::memcpy(row, kept->second.data(), bytes);
  return true;
}

void RoundedTable::Prefetch(absl::Span<const int64_t> ids) const {
  for (const int64_t id : ids) {
    PrefetchRow(rounded_.packed.get() + id * row_bytes_, row_bytes_);
  }
}

}  // namespace colcast::engine
