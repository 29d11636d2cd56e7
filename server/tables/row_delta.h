// A delta of an embedding table: rows that replace those with the same ids. docs/tables.md
// describes the format.
#ifndef COLCAST_SERVER_TABLES_ROW_DELTA_H_
#define COLCAST_SERVER_TABLES_ROW_DELTA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/tables/safetensors.h"
#include "server/wire/bytes.h"

namespace colcast::tables {

inline constexpr char kRowsFormat[] = "colcast-rows";

// A delta whose fields point into the file's bytes.
struct RowDelta {
  std::string table;  // name of the variable
  Span<int64_t> ids;  // ascending, at least 0
  std::string dtype;
  std::vector<int64_t> shape;  // the shape of the tensor `rows`
  const char* rows = nullptr;
  size_t row_bytes = 0;

  // Returns DATA_LOSS, with the position in the file, for malformed content.
  static Status Read(Safetensors* file, RowDelta* delta);
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_ROW_DELTA_H_
