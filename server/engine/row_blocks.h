// Columns put together by their rows, and rows taken out of them, straight into a tensor: what a
// batch of requests and a slice of one are made of.
#ifndef COLCAST_SERVER_ENGINE_ROW_BLOCKS_H_
#define COLCAST_SERVER_ENGINE_ROW_BLOCKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/wire_column.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Rows [first, first + rows) of a column, or its row `first` so often.
struct RowBlock {
  const WireColumn* column = nullptr;
  int64_t first = 0;
  int64_t rows = 0;
  bool repeated = false;
};

// All rows of a column, or its only one repeated to as many. REQUIRES one row or `rows`.
inline RowBlock AllRows(const WireColumn& column, int64_t rows) {
  return {&column, 0, rows, column.dims()[0] != rows};
}

// What stands in a shorter row's place.
enum class PadWith : uint8_t { kZeros, kFirstValue };

// Whether a column's rows lie one after the other as they were sent, none missing and none to be
// checked.
bool IsLaidOut(const WireColumn& column);

// Sets `*stacked` to the rows of all blocks, one block below the other; each value is copied once.
// Where inner dimensions differ, each becomes the largest and what is missing is filled: with zeros
// or empty strings, or with the first value of the block's column.
//
// INVALID_ARGUMENT as CopyValues() and VisitStrings() have it, RESOURCE_EXHAUSTED without memory.
// REQUIRES a dtype and a rank, of 1 at least, that all blocks share, and of blocks that are not all
// of their column's rows, or its first one, that it IsLaidOut().
absl::Status StackRows(absl::Span<const RowBlock> blocks, PadWith pad, tensorflow::Tensor* stacked);

// The memory that StackRows() takes for these blocks beyond the bytes in which their columns were
// sent; the sizes of strings are read. A double, because it does not overflow.
double ExtraBytes(absl::Span<const RowBlock> blocks, PadWith pad);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_ROW_BLOCKS_H_
