// Stacks rows of columns, or copies rows out of them, directly into a tensor: the building block of
// batches and slices.
#ifndef COLCAST_SERVER_ENGINE_ROW_BLOCKS_H_
#define COLCAST_SERVER_ENGINE_ROW_BLOCKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/input.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Rows [first, first + rows) of a column, or row `first` repeated `rows` times.
struct RowBlock {
  const Input* column = nullptr;
  int64_t first = 0;
  int64_t rows = 0;
  bool repeated = false;
};

// All rows of a column, or its only row repeated. REQUIRES that the column has 1 or `rows` rows.
inline RowBlock AllRows(const Input& column, int64_t rows) {
  return {&column, 0, rows, column.dims()[0] != rows};
}

// The value that pads a shorter row.
enum class PadWith : uint8_t { kZeros, kFirstValue };

// Whether a column's rows are contiguous as sent, complete, and need no checks.
bool IsLaidOut(const Input& column);

// Sets `*stacked` to the rows of all blocks, one block after another; each value is copied once.
// Each inner dimension becomes the largest among the blocks; shorter rows are padded with zeros or
// empty strings, or with the first value of the block's column.
//
// Returns INVALID_ARGUMENT in the cases of CopyValues() and VisitStrings(), and RESOURCE_EXHAUSTED
// if memory runs out. REQUIRES that all blocks share a dtype and a rank of at least 1, and that a
// column IsLaidOut() unless its block is all its rows or its first row.
absl::Status StackRows(absl::Span<const RowBlock> blocks, PadWith pad, tensorflow::Tensor* stacked);

// The memory that StackRows() needs for these blocks beyond the bytes that were sent. Reads the
// sizes of strings. A double, because it cannot overflow.
double ExtraBytes(absl::Span<const RowBlock> blocks, PadWith pad);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_ROW_BLOCKS_H_
