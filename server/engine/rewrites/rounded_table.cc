#include "server/engine/rewrites/rounded_table.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

// The mask of all lanes. GCC warns about uninitialized values in instructions without a mask.
constexpr __mmask16 kAll = 0xffff;

// Some rows of a table, beginning at one of its columns.
struct Rows {
  const char* first_column;  // the column's address in row 0 of the table
  const char* table;
  size_t row_bytes;
  absl::Span<const int64_t> ids;
};

// Int8 and Bfloat16 read the values of a row; Scale() returns the row's scale.
struct Int8 {
  static constexpr size_t kBytesBefore = kScaleBytes, kValueBytes = 1;
  static float Scale(const char* row) { return FromHalf(row); }
  static float One(const char* at) { return static_cast<int8_t>(*at); }
  COLCAST_AVX2 static __m256 Eight(const char* at) {
    const __m128i values = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(values));
  }
  COLCAST_AVX512 static __m512 Sixteen(const char* at) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepi8_epi32(kAll, values));
  }
};

struct Bfloat16 {
  static constexpr size_t kBytesBefore = 0, kValueBytes = 2;
  static float Scale(const char*) { return 1; }
  static float One(const char* at) { return FromHalf(at); }
  COLCAST_AVX2 static __m256 Eight(const char* at) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(values), 16));
  }
  COLCAST_AVX512 static __m512 Sixteen(const char* at) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(kAll, values);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, wide, 16));
  }
};

template <class Row>
void SumAny(const Rows& rows, int64_t columns, float* sums) {
  std::fill_n(sums, columns, 0.0f);
  for (const int64_t id : rows.ids) {
    const float scale = Row::Scale(rows.table + id * rows.row_bytes);
    const char* const values = rows.first_column + id * rows.row_bytes;
    for (int64_t i = 0; i < columns; ++i)
      sums[i] += scale * Row::One(values + i * Row::kValueBytes);
  }
}

template <class Row>
COLCAST_AVX2 void SumAvx2(const Rows& rows, float* sums) {
  __m256 sum = _mm256_setzero_ps();
  for (const int64_t id : rows.ids) {
    const __m256 scale = _mm256_set1_ps(Row::Scale(rows.table + id * rows.row_bytes));
    sum = _mm256_fmadd_ps(scale, Row::Eight(rows.first_column + id * rows.row_bytes), sum);
  }
  _mm256_storeu_ps(sums, sum);
}

template <class Row, int kVectors>
COLCAST_AVX512 void SumAvx512(const Rows& rows, float* sums) {
  __m512 sum[kVectors];
  for (__m512& one : sum) one = _mm512_setzero_ps();
  for (const int64_t id : rows.ids) {
    const __m512 scale = _mm512_set1_ps(Row::Scale(rows.table + id * rows.row_bytes));
    const char* const values = rows.first_column + id * rows.row_bytes;
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = _mm512_fmadd_ps(scale, Row::Sixteen(values + v * 16 * Row::kValueBytes), sum[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(sums + 16 * v, sum[v]);
}

// Sums whole rows; `rows` begins at the table's first byte.
template <class Row>
void SumWith(Instructions instructions, Rows rows, int64_t width, float* sums) {
  rows.first_column += Row::kBytesBefore;
  int64_t column = 0;
  const auto take = [&](auto sum, int64_t columns) {
    for (; column + columns <= width; column += columns) {
      sum(rows, sums + column);
      rows.first_column += columns * Row::kValueBytes;
    }
  };
  if (instructions == Instructions::kAvx512) {
    take(SumAvx512<Row, 4>, 64);
    take(SumAvx512<Row, 2>, 32);
    take(SumAvx512<Row, 1>, 16);
  }
  if (instructions != Instructions::kAny) take(SumAvx2<Row>, 8);
  if (column < width) SumAny<Row>(rows, width - column, sums + column);
}

}  // namespace

RoundedTable::RoundedTable(const float* values, int64_t rows, int64_t width, RoundedRows rounded,
                           Instructions instructions)
    : values_(values),
      rows_(rows),
      width_(width),
      instructions_(instructions),
      rounded_(std::move(rounded)),
      row_bytes_(RoundedRows::ValuesInRow(rounded_.type, width) * DataTypeSize(rounded_.type)) {}

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
  const Rows rows{packed, packed, row_bytes_, ids};
  if (rounded_.type == tensorflow::DT_INT8) {
    SumWith<Int8>(instructions_, rows, width_, sums);
  } else if (ids.size() != 1) {
    SumWith<Bfloat16>(instructions_, rows, width_, sums);
  } else {  // without arithmetic, which would change -0 and denormals
    const char* const row = packed + ids[0] * row_bytes_;
    for (int64_t i = 0; i < width_; ++i) sums[i] = Bfloat16::One(row + i * Bfloat16::kValueBytes);
  }
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
  if (IsChanged(id)) {  // floats relative to values_
    std::memcpy(row, reinterpret_cast<const char*>(values_) + id * static_cast<int64_t>(bytes),
                bytes);
    return true;
  }
  if (!IsKept(id)) return false;
  const auto kept = rounded_.kept.find(id);
  // The row is missing if the rows are mapped and their file was changed; the run then fails.
  if (kept != rounded_.kept.end()) std::memcpy(row, kept->second.data(), bytes);
  return true;
}

void RoundedTable::Prefetch(absl::Span<const int64_t> ids) const {
  for (const int64_t id : ids) {
    PrefetchRow(rounded_.packed.get() + id * row_bytes_, row_bytes_);
  }
}

}  // namespace colcast::engine
