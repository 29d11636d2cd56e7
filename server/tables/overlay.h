// The rows of an embedding table that deltas changed. Immutable: With() makes another overlay that
// shares memory with this one, so a reader of one overlay never sees the next delta.
#ifndef COLCAST_SERVER_TABLES_OVERLAY_H_
#define COLCAST_SERVER_TABLES_OVERLAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/wire/span.h"

namespace colcast::tables {

class Overlay {
 public:
  // Without changes, of a table of `rows` rows at address `table`, which is not read.
  Overlay(const void* table, size_t row_bytes, int64_t rows)
      : table_(static_cast<const char*>(table)), row_bytes_(row_bytes), table_rows_(rows) {}

  const void* table() const { return table_; }
  // Number of the last delta; 0 without one.
  int64_t sequence() const { return sequence_; }
  int64_t rows() const;  // in memory; a row that changed several times may count several times
  int64_t bytes() const;

  // Adds a delta's rows, which are consecutive and are copied. `ids` rise and are rows of the
  // table. Takes time proportional to the delta, and sometimes to all rows changed so far.
  std::shared_ptr<const Overlay> With(Span<int64_t> ids, const char* rows, int64_t sequence) const;

  // Replaces the id of each changed row by the position, relative to `table`, of its new row, so
  // that a read at table + id * row_bytes reads the new row. REQUIRES rows of the table.
  void Redirect(int64_t* ids, size_t count) const;

  // Implementation details follow.
 private:
  struct Layer;
  using Rows = std::vector<std::pair<int64_t, const char*>>;  // by id, rising

  std::shared_ptr<const Layer> MakeLayer(const Rows& rows) const;
  Rows RowsOf(const Layer& layer) const;

  const char* table_;
  size_t row_bytes_;
  int64_t table_rows_;
  int64_t sequence_ = 0;
  std::vector<std::shared_ptr<const Layer>> layers_;  // later ones win, and are smaller
  // One bit per row of the table: set if this overlay or a later one has the row.
  std::shared_ptr<std::vector<std::atomic<uint64_t>>> changed_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_OVERLAY_H_
