// A delta of an embedding table: rows that take the place of those with the same ids. The format:
// docs/tables.md.
#ifndef COLCAST_SERVER_TABLES_ROW_DELTA_H_
#define COLCAST_SERVER_TABLES_ROW_DELTA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/wire/span.h"

namespace colcast::tables {

// Points into the file's bytes.
struct RowDelta {
  std::string table;       // the variable's name
  std::string checkpoint;  // checksum of the index of the checkpoint that it was made for
  int64_t sequence = 0;    // its number among the version's deltas
  Span<int64_t> ids;       // from 0 on, rising
  std::string dtype;
  std::vector<int64_t> shape;  // of all rows
  const char* rows = nullptr;
  size_t row_bytes = 0;

  // Of bytes aligned to 8. DATA_LOSS, saying where, for what is malformed.
  static Status Read(std::string_view bytes, RowDelta* delta);
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_ROW_DELTA_H_
