// The rows of an embedding table that ids name, written into a wider tensor.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_ROWS_H_
#define COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace colcast::engine {

// Where rows go: row i begins at `begin + i * stride`, in bytes.
struct OutputRows {
  char* begin;
  size_t stride;
};

// Copies rows first to first + count of `width` bytes each, which lie one behind the other.
void CopyRows(const char* from, size_t width, int64_t first, int64_t count, OutputRows output);

// Copies one row of `width` bytes `count` times; it may lie at the first of them.
void RepeatRow(const char* row, size_t width, int64_t count, OutputRows output);

// Copies the rows of `width` bytes; row i of the output is row ids[i] of the table.
void GatherRows(const char* table, size_t width, absl::Span<const int64_t> ids, OutputRows output);

// Sums rows of `width` floats, a multiple of 8; each of the output's `rows` has as many ids. The
// additions are in the order of TensorFlow's Sum over the second of three axes: the same bits.
// Each id's row is multiplied by its weight, if there are weights.
void SumRows(const float* table, size_t width, absl::Span<const int64_t> ids,
             absl::Span<const float> weights, int64_t rows, OutputRows output);

// Divides each of the output's rows of `width` floats, a multiple of 8, by the sum of its weights,
// which are 0 or 1, or by 1 if that is more.
void DivideRows(size_t width, absl::Span<const float> weights, int64_t rows, OutputRows output);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_LOOKUP_ROWS_H_
