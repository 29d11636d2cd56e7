// Columns put together by their rows, and rows taken out of them: what a batch of requests and a
// piece of one are made of.
#ifndef COLCAST_SERVER_WIRE_COLUMN_ROWS_H_
#define COLCAST_SERVER_WIRE_COLUMN_ROWS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/wire/predict_request.h"

namespace colcast {

// What one request's column adds to a joined one.
struct RowBlock {
  const Column* column = nullptr;
  int64_t elements = 0;  // ElementCount()
  // As many as the column has, or its first row so often.
  int64_t rows = 0;
  bool first_row_only = false;
};

// What stands in a shorter row's place.
enum class PadWith : uint8_t { kZeros, kFirstValue };

// Adds to `request` the column `name` with the rows of all blocks, one block after the other. Where
// inner dimensions differ, each becomes the largest and what is missing is filled: with zeros or
// empty strings, or with the block's first value. The values are laid out in tensor_content;
// strings are views, so the blocks' bytes must live as long as the request is in use.
//
// INVALID_ARGUMENT as CopyValues() and VisitStrings() have it; then the request has the column, but
// not its values. REQUIRES a dtype and a rank, of 1 at least, that all blocks share, a name that
// the request does not have, and that CheckValues(*column, elements) was OK.
Status JoinRows(std::string_view name, const std::vector<RowBlock>& blocks, PadWith pad,
                DecodedRequest* request);

// The bytes that JoinRows() takes for these blocks; from shapes alone. A double, because it does
// not overflow. REQUIRES what JoinRows() does of dtypes and ranks.
double JoinedBytes(const std::vector<RowBlock>& blocks);

// Whether rows can be taken out of a column as it was sent: its values lie one after the other,
// none missing and none to be checked.
bool IsLaidOut(const Column& column, int64_t elements);

// Adds to `request` rows [first, first + rows) of a column that IsLaidOut() or that JoinRows()
// made, which must outlive it.
void TakeRows(const Column& joined, int64_t first, int64_t rows, DecodedRequest* request);

}  // namespace colcast

#endif  // COLCAST_SERVER_WIRE_COLUMN_ROWS_H_
