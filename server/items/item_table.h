// One version of an item table, with the deltas applied so far. Immutable: applying a delta makes a
// new object that shares the unchanged data.
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
  // The row number for unknown keys. Row 0 contains the features' default values.
  static constexpr uint32_t kUnknown = 0;

  static std::shared_ptr<const ItemTable> Create(std::shared_ptr<const TableFile> table);

  // Sets `*made` to this table with its next delta applied. Returns FAILED_PRECONDITION if the
  // delta's domain, key or features differ from the table's, or if there are too many rows.
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

  // Finds the row number of each key; kUnknown if there is no row.
  void Find(const Keys& keys, std::vector<uint32_t>* numbers) const;

  // The name of a feature without a default; empty if every feature has one.
  std::string_view without_default() const { return without_default_; }

  // The last row's number plus 1. The rows of a delta come after all earlier rows.
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
  // A run of consecutive row numbers, beginning with `first`, and the columns that hold these rows.
  struct Source {
    uint32_t first = 0;
    std::shared_ptr<const TableFile> file;  // null for the defaults
    const std::vector<TableColumn>* columns = nullptr;
  };
  // One row that holds the default value of each feature.
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
  // Row numbers of the keys that deltas changed; kUnknown for deleted rows. The keys point into the
  // deltas' files.
  std::unordered_map<std::string_view, uint32_t, Hash> changed_;
};

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_ITEM_TABLE_H_
