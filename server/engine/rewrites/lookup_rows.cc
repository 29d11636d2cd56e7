#include "server/engine/rewrites/lookup_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace colcast::engine {
namespace {

// The floats in a register of AVX, which TensorFlow's x86 wheel requires, or of NEON.
#ifdef __AVX__
constexpr int kFloats = 8;
#else
constexpr int kFloats = 4;
#endif
typedef float Floats __attribute__((vector_size(kFloats * sizeof(float))));

// A width known at compile time avoids calls of memcpy(); kWidth 0 allows any width.
template <size_t kWidth>
void Gather(const char* table, size_t any_width, absl::Span<const int64_t> ids, OutputRows output) {
  const size_t width = kWidth == 0 ? any_width : kWidth;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kIdsAhead < ids.size()) PrefetchRow(table + ids[i + kIdsAhead] * width, width);
    std::memcpy(output.begin + i * output.stride, table + ids[i] * width, width);
  }
}

// Sums kColumns columns; `weights` may be null.
template <int kColumns>
void SumColumns(const float* table, size_t width, absl::Span<const int64_t> ids,
                const float* weights, float* sums) {
  constexpr int kVectors = kColumns / kFloats;
  Floats partial[4][kVectors];  // filled in a loop, so that it stays in registers
  for (auto& vectors : partial) std::fill_n(vectors, kVectors, Floats{});
  const auto add = [&](size_t i, Floats* to) {
    const float* const row = table + ids[i] * width;
    for (int v = 0; v < kVectors; ++v) {
      Floats values;
      std::memcpy(&values, row + kFloats * v, sizeof(values));
      if (weights != nullptr) values *= weights[i];
      to[v] += values;
    }
  };
  // Uses the order of Eigen's InnerMostDimPreserver: four partial sums for 16 values or more.
  const size_t count = ids.size();
  const size_t by_fours = count >= 16 ? count / 4 * 4 : 0;
  for (size_t i = 0; i < by_fours; i += 4) {
    for (int p = 0; p < 4; ++p) add(i + p, partial[p]);
  }
  if (by_fours > 0) {
    for (int p = 1; p < 4; ++p) {
      for (int v = 0; v < kVectors; ++v) partial[0][v] += partial[p][v];
    }
  }
  for (size_t i = by_fours; i < count; ++i) add(i, partial[0]);
  for (int v = 0; v < kVectors; ++v)
    std::memcpy(sums + kFloats * v, &partial[0][v], sizeof(Floats));
}

void Sum(const float* table, size_t width, absl::Span<const int64_t> ids, const float* weights,
         float* sums) {
  size_t column = 0;
  for (; column + 16 <= width; column += 16) {
    SumColumns<16>(table + column, width, ids, weights, sums + column);
  }
  if (column < width) SumColumns<8>(table + column, width, ids, weights, sums + column);
}

template <size_t kWidth>
void Copy(const char* from, size_t any_width, int64_t count, OutputRows output) {
  const size_t width = kWidth == 0 ? any_width : kWidth;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(output.begin + i * output.stride, from + i * width, width);
  }
}

}  // namespace

void CopyRows(const char* from, size_t width, int64_t first, int64_t count, OutputRows output) {
  from += first * width;
  if (width == 4) return Copy<4>(from, width, count, output);
  return Copy<0>(from, width, count, output);
}

void RepeatRow(const char* row, size_t width, int64_t count, OutputRows output) {
  for (int64_t i = row == output.begin ? 1 : 0; i < count; ++i) {
    std::memcpy(output.begin + i * output.stride, row, width);
  }
}

void GatherRows(const char* table, size_t width, absl::Span<const int64_t> ids, OutputRows output) {
  const auto gather = width == 4     ? Gather<4>
                      : width == 16  ? Gather<16>
                      : width == 32  ? Gather<32>
                      : width == 64  ? Gather<64>
                      : width == 128 ? Gather<128>
                      : width == 256 ? Gather<256>
                                     : Gather<0>;
  gather(table, width, ids, output);
}

void SumRows(const float* table, size_t width, absl::Span<const int64_t> ids,
             absl::Span<const float> weights, int64_t rows, OutputRows output) {
  if (rows == 0) return;
  const size_t count = ids.size() / rows;
  const size_t row_bytes = width * sizeof(float);
  const char* const bytes = reinterpret_cast<const char*>(table);
  // A sum of one row must equal that row, including -0.
  if (count == 1) {
    GatherRows(bytes, row_bytes, ids, output);
    for (size_t i = 0; i < weights.size(); ++i) {
      auto* const row = reinterpret_cast<float*>(output.begin + i * output.stride);
      for (size_t column = 0; column < width; ++column) row[column] *= weights[i];
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (const int64_t id : ids.subspan((i + 1) * count, count)) {
      PrefetchRow(bytes + id * row_bytes, row_bytes);
    }
    Sum(table, width, ids.subspan(i * count, count),
        weights.empty() ? nullptr : weights.data() + i * count,
        reinterpret_cast<float*>(output.begin + i * output.stride));
  }
}

void DivideRows(size_t width, absl::Span<const float> weights, int64_t rows, OutputRows output) {
  if (rows == 0) return;
  const size_t count = weights.size() / rows;
  for (int64_t i = 0; i < rows; ++i) {
    const auto own = weights.subspan(i * count, count);
    const float number = std::max(1.0f, std::accumulate(own.begin(), own.end(), 0.0f));
    auto* const row = reinterpret_cast<float*>(output.begin + i * output.stride);
    for (size_t column = 0; column < width; ++column) row[column] /= number;
  }
}

}  // namespace colcast::engine
