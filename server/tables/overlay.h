// The rows of an embedding table that deltas changed. Immutable: With() makes another overlay that
// shares memory with this one, so that readers of one overlay never see the next delta.
#ifndef COLCAST_SERVER_TABLES_OVERLAY_H_
#define COLCAST_SERVER_TABLES_OVERLAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/wire/bytes.h"

namespace colcast::tables {

class Overlay {
 public:
  // An overlay without changes, of a table with `rows` rows at address `table`. Does not read the
  // table.
  Overlay(const void* table, size_t row_bytes, int64_t rows)
      : table_(static_cast<const char*>(table)), row_bytes_(row_bytes), table_rows_(rows) {}

  const void* table() const { return table_; }
  // Number of the last delta; 0 if there is none.
  int64_t sequence() const { return sequence_; }
  // Number of rows in memory; a row that changed several times may count several times.
  int64_t rows() const;
  int64_t bytes() const;

  // Adds a copy of a delta's rows, which are contiguous. `ids` must be ascending and be rows of the
  // table. Takes time proportional to the delta, and sometimes to all rows changed so far.
  std::shared_ptr<const Overlay> With(Span<int64_t> ids, const char* rows, int64_t sequence) const;

  // Replaces the id of each changed row with the position of its new row relative to `table`, so
  // that a read at table + id * row_bytes reads the new row. REQUIRES ids of the table's rows.
  void Redirect(int64_t* ids, size_t count) const;

 private:
  struct Layer;
  using Rows = std::vector<std::pair<int64_t, const char*>>;  // ascending by id

  std::shared_ptr<const Layer> MakeLayer(const Rows& rows) const;
  Rows RowsOf(const Layer& layer) const;

  const char* table_;
  size_t row_bytes_;
  int64_t table_rows_;
  int64_t sequence_ = 0;
  // Later layers override earlier ones, and are smaller.
  std::vector<std::shared_ptr<const Layer>> layers_;
  // One bit per row of the table: set if this overlay or a later one has the row.
  std::shared_ptr<std::vector<std::atomic<uint64_t>>> changed_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_OVERLAY_H_
