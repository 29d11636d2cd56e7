// A version of an item table with the deltas applied since. Immutable: applying a delta makes a new
// object that shares the unchanged data.
#ifndef COLCAST_SERVER_ITEMS_ITEM_TABLE_H_
#define COLCAST_SERVER_ITEMS_ITEM_TABLE_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/base/status.h"
#include "server/items/table_file.h"

namespace colcast::items {

class ItemTable {
 public:
  // The row number of keys without a row. That row's features are the defaults.
  static constexpr uint32_t kUnknown = 0;

  static std::shared_ptr<const ItemTable> Create(std::shared_ptr<const TableFile> table);

  // This table with its next delta applied. Returns FAILED_PRECONDITION if the delta's columns
  // differ from the table's.
  Status WithDelta(std::shared_ptr<const TableFile> delta,
                   std::shared_ptr<const ItemTable>* made) const;

  // See StoredRows::table. Deltas do not change it.
  uint64_t number() const { return number_; }

  const TableHeader& header() const { return table().header(); }
  const ExampleFeatures& features() const { return table().features(); }
  int64_t rows() const { return rows_; }
  int64_t deltas() const { return static_cast<int64_t>(sources_.size()) - kFirstDelta; }
  int64_t bytes() const;
  // When the oldest delta was made, in seconds since the epoch; 0 without deltas.
  int64_t oldest_delta() const;

  // Finds the number of each key's row, or kUnknown.
  void Find(const Keys& keys, std::vector<uint32_t>* numbers) const;

  // Empty if every feature has a default; otherwise the name of one without.
  std::string_view without_default() const { return without_default_; }

  // One more than the last row's number; rows of a delta come after all earlier rows.
  uint32_t end() const;

  // The location of a row's values. REQUIRES a number from Find().
  struct Place {
    const std::vector<TableColumn>* columns = nullptr;
    uint32_t row = 0;
  };
  Place At(uint32_t number) const {
    const uint32_t row = number - 1;
    return row < table_rows_ ? Place{&table().columns(), row} : AtOther(number);
  }

 private:
  // Consecutive rows, numbered from `first`.
  struct Source {
    uint32_t first = 0;
    std::shared_ptr<const TableFile> file;  // null for the defaults
    const std::vector<TableColumn>* columns = nullptr;
  };
  // The defaults: one row of each feature.
  struct Defaults;
  struct Hash {
    size_t operator()(std::string_view key) const { return HashOf(key); }
  };
  static constexpr int64_t kFirstDelta = 2;

  ItemTable() = default;
  const TableFile& table() const { return *sources_[1].file; }
  Place AtOther(uint32_t number) const;
  void FindInTable(const Keys& keys, std::vector<uint32_t>* numbers) const;

  uint64_t number_ = 0;
  std::shared_ptr<const Defaults> defaults_;
  std::string_view without_default_;
  std::vector<Source> sources_;  // the defaults, the table, then the deltas
  uint32_t table_rows_ = 0;
  int64_t rows_ = 0;
  // Rows changed by deltas, by key; the keys point into the deltas' files. kUnknown means that the
  // row was deleted.
  std::unordered_map<std::string_view, uint32_t, Hash> changed_;
};

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_ITEM_TABLE_H_
