// The rows of embedding tables that deltas changed, and the state of a model's tables between two
// deltas.
#ifndef COLCAST_SERVER_TABLES_OVERLAY_H_
#define COLCAST_SERVER_TABLES_OVERLAY_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/tables/safetensors.h"
#include "server/wire/bytes.h"

namespace colcast::tables {

// The rows of an embedding table that deltas have changed. Immutable: With() returns a new overlay
// that shares memory with this one, so that readers of this one never see the next delta.
class Overlay {
 public:
  // An empty overlay for a table with `rows` rows at address `table`. Does not read the table.
  Overlay(const void* table, size_t row_bytes, int64_t rows)
      : table_(static_cast<const char*>(table)), row_bytes_(row_bytes), table_rows_(rows) {}

  const void* table() const { return table_; }
  // Number of the last delta; 0 if there is none.
  int64_t sequence() const { return sequence_; }
  // Number of rows in memory. A row that changed several times may be counted several times.
  int64_t rows() const;
  int64_t bytes() const;

  // Returns an overlay that also contains a copy of a delta's rows, which are contiguous. `ids`
  // must be ascending ids of the table's rows. Takes time proportional to the delta, and
  // occasionally to all rows changed so far.
  std::shared_ptr<const Overlay> With(Span<int64_t> ids, const char* rows, int64_t sequence) const;

  // Replaces the id of each changed row with the new row's position relative to `table`, so that
  // reading table + id * row_bytes yields the new row. REQUIRES ids of the table's rows.
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
  // One bit per row of the table, set if the row is in this overlay or a later one with these bits.
  std::shared_ptr<std::vector<std::atomic<uint64_t>>> changed_;
};

// The contents of a model's embedding tables after some number of deltas. All runs of a request, on
// any thread, read the same generation.
struct Generation {
  int64_t deltas = 0;
  std::vector<std::shared_ptr<const Overlay>> overlays;  // one per changed table
};
using GenerationPtr = std::shared_ptr<const Generation>;

// While an instance exists, runs on its thread read this generation of the tables. Null means that
// no table has changed.
class ReadsGeneration {
 public:
  // If `pinned`, instances created later on this thread have no effect.
  explicit ReadsGeneration(GenerationPtr generation, bool pinned = false) : before_(here_) {
    if (!before_.pinned) here_ = {std::move(generation), pinned};
  }
  ~ReadsGeneration() { here_ = std::move(before_); }
  ReadsGeneration(const ReadsGeneration&) = delete;
  ReadsGeneration& operator=(const ReadsGeneration&) = delete;

  static const GenerationPtr& Here() { return here_.generation; }

  // Returns the overlay of the table at this address, or null if that table has not changed.
  static const Overlay* Of(const void* table) {
    if (Here() == nullptr) return nullptr;
    for (const auto& overlay : Here()->overlays) {
      if (overlay->table() == table) return overlay.get();
    }
    return nullptr;
  }

  // The number of the last delta that changed one of these tables, which identifies their contents;
  // 0 if no delta has changed them.
  static int64_t LastChangeOf(const std::vector<const void*>& tables) {
    int64_t last = 0;
    if (Here() == nullptr) return last;
    for (const void* const table : tables) {
      const Overlay* const overlay = Of(table);
      if (overlay != nullptr) last = std::max(last, overlay->sequence());
    }
    return last;
  }

 private:
  struct State {
    GenerationPtr generation;
    bool pinned;
  };
  inline static thread_local State here_ = {nullptr, false};
  State before_;
};

inline constexpr char kRowsFormat[] = "colcast-rows";

// A delta of an embedding table: rows that replace the table's rows with the same ids
// (docs/tables.md). Its fields point into the file's bytes.
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

#endif  // COLCAST_SERVER_TABLES_OVERLAY_H_
