// Copies or sums rows of an embedding table into a wider tensor.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_ROWS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace colcast::engine {

// The destination: row i begins at `begin + i * stride`, in bytes.
struct OutputRows {
  char* begin;
  size_t stride;
};

// The number of ids between a row's prefetch and its use.
inline constexpr size_t kIdsAhead = 12;

// Prefetches a row's cache lines, but at most four, so that they do not evict each other.
inline void PrefetchRow(const char* row, size_t width) {
  constexpr size_t kCacheLine = 64;  // bytes
  const size_t bytes = std::min(width, 4 * kCacheLine);
  for (size_t byte = 0; byte < bytes; byte += kCacheLine) __builtin_prefetch(row + byte);
  __builtin_prefetch(row + bytes - 1);  // the row may straddle one more line
}

// Copies rows [first, first + count) of `width` bytes each from contiguous rows.
void CopyRows(const char* from, size_t width, int64_t first, int64_t count, OutputRows output);

// Copies one row of `width` bytes `count` times. The row may be the first destination itself.
void RepeatRow(const char* row, size_t width, int64_t count, OutputRows output);

// Copies rows of `width` bytes; row i of the output is row ids[i] of the table.
void GatherRows(const char* table, size_t width, absl::Span<const int64_t> ids, OutputRows output);

// Sums rows of `width` floats, a multiple of 8; each of the `rows` output rows sums the rows of
// equally many consecutive ids. Additions follow the order of TensorFlow's Sum over the second of
// three axes, so that the bits are the same. Multiplies each id's row by its weight, if any.
void SumRows(const float* table, size_t width, absl::Span<const int64_t> ids,
             absl::Span<const float> weights, int64_t rows, OutputRows output);

// Divides each output row of `width` floats, a multiple of 8, by the sum of its weights, which are
// 0 or 1, or by 1 if that sum is 0.
void DivideRows(size_t width, absl::Span<const float> weights, int64_t rows, OutputRows output);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_ROWS_H_
