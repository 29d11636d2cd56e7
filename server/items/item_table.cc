#include "server/items/item_table.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <utility>

#include "server/base/scratch.h"
#include "server/wire/data_type.h"
#include "server/wire/reader.h"

namespace colcast::items {

struct ItemTable::Defaults {
  explicit Defaults(const ExampleFeatures& features) : values(features.size()) {
    for (size_t i = 0; i < features.size(); ++i) {
      TableColumn& column = columns.emplace_back();
      const ExampleFeatures::Entry& entry = features[i];
      if (entry.feature.kind != FeatureKind::kFixedLen) {
        column.splits = kNoSteps;
      } else if (entry.feature.dtype == DT_STRING) {
        column.texts = TextsOf(entry, &values[i]);
      } else {
        values[i].numbers = entry.feature.default_values;
        values[i].numbers.resize(entry.size * NumberSize(entry.feature.dtype));
        column.numbers = reinterpret_cast<const uint8_t*>(values[i].numbers.data());
      }
    }
  }

  struct Values {
    std::string numbers;
    std::vector<int64_t> offsets = {0};
    std::string texts;
  };

  static Texts TextsOf(const ExampleFeatures::Entry& entry, Values* values) {
    Reader records{Bytes(entry.feature.default_values)};
    uint32_t tag;
    Bytes text;
    while (!records.done() && records.ReadTag(&tag) && records.ReadBytes(&text)) {
      values->texts += text.ToString();
      values->offsets.push_back(static_cast<int64_t>(values->texts.size()));
    }
    values->offsets.resize(entry.size + 1, values->offsets.back());
    return {values->offsets, values->texts.data()};
  }

  inline static const std::vector<int64_t> kNoSteps = {0, 0};
  std::vector<Values> values;
  std::vector<TableColumn> columns;
};

std::shared_ptr<const ItemTable> ItemTable::Create(std::shared_ptr<const TableFile> table) {
  static std::atomic<uint64_t> last_number{0};
  std::shared_ptr<ItemTable> result(new ItemTable);
  result->number_ = ++last_number;
  const ExampleFeatures& features = table->features();
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].feature.required) result->without_default_ = features[i].feature.name;
  }
  result->defaults_ = std::make_shared<const Defaults>(features);
  result->table_rows_ = static_cast<uint32_t>(table->rows());
  result->rows_ = table->rows();
  result->sources_.push_back({kUnknown, nullptr, &result->defaults_->columns});
  const std::vector<TableColumn>* const columns = &table->columns();
  result->sources_.push_back({kUnknown + 1, std::move(table), columns});
  return result;
}

Status ItemTable::WithDelta(std::shared_ptr<const TableFile> delta,
                            std::shared_ptr<const ItemTable>* made) const {
  const TableHeader& header = delta->header();
  if (header.features != this->header().features || header.key != this->header().key ||
      header.has_text_keys != this->header().has_text_keys ||
      header.domain != this->header().domain) {
    return FailedPrecondition("its domain, its key or its features differ from the table's");
  }
  const int64_t first = end();
  if (first + delta->rows() > std::numeric_limits<uint32_t>::max()) {
    return FailedPrecondition("too many rows with all deltas; publish a new version of the table");
  }
  std::shared_ptr<ItemTable> result(new ItemTable(*this));
  result->sources_.push_back({static_cast<uint32_t>(first), delta, &delta->columns()});
  std::vector<uint32_t> before;
  for (const Keys* const keys : {&delta->keys(), &delta->deleted()}) {
    const bool gone = keys == &delta->deleted();
    Find(*keys, &before);
    for (size_t i = 0; i < keys->size(); ++i) {
      const uint32_t number = gone ? kUnknown : static_cast<uint32_t>(first + i);
      result->rows_ += (number != kUnknown) - (before[i] != kUnknown);
      result->changed_.insert_or_assign((*keys)[i], number);
    }
  }
  *made = std::move(result);
  return OkStatus();
}

uint32_t ItemTable::end() const {
  const Source& last = sources_.back();
  return last.first + static_cast<uint32_t>(last.file->rows());
}

int64_t ItemTable::bytes() const {
  size_t bytes = 0;
  for (const Source& source : sources_) bytes += source.file == nullptr ? 0 : source.file->bytes();
  return static_cast<int64_t>(bytes);
}

int64_t ItemTable::oldest_delta() const {
  return deltas() == 0 ? 0 : sources_[kFirstDelta].file->header().created;
}

void ItemTable::Find(const Keys& keys, std::vector<uint32_t>* numbers) const {
  FindInTable(keys, numbers);
  if (changed_.empty()) return;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = changed_.find(keys[i]);
    if (found != changed_.end()) (*numbers)[i] = found->second;
  }
}

// Works in passes: each prefetches what the next one reads, so that the cache misses of all keys
// overlap.
void ItemTable::FindInTable(const Keys& keys, std::vector<uint32_t>* numbers) const {
  const TableFile& of = table();
  const size_t count = keys.size();
  thread_local std::vector<size_t> buckets;
  const FreeIfLarge free_buckets(&buckets);
  buckets.resize(count);
  numbers->assign(count, kUnknown);
  for (size_t i = 0; i < count; ++i) {
    buckets[i] = of.BucketOf(HashOf(keys[i]));
    __builtin_prefetch(&of.starts()[buckets[i]]);
  }
  for (size_t i = 0; i < count; ++i) {
    __builtin_prefetch(&of.bucket_rows()[0] + of.starts()[buckets[i]]);
  }
  const auto for_rows = [&](size_t i, auto&& visit) {
    const uint32_t end = of.starts()[buckets[i] + 1];
    for (uint32_t k = of.starts()[buckets[i]]; k < end; ++k) visit(of.bucket_rows()[k]);
  };
  const Keys& own = of.keys();
  for (size_t i = 0; i < count; ++i) {
    for_rows(i, [&](uint32_t row) {
      __builtin_prefetch(own.are_texts ? &own.texts.offsets[row] : &own.numbers[row]);
    });
  }
  if (own.are_texts) {
    for (size_t i = 0; i < count; ++i) {
      for_rows(i, [&](uint32_t row) { __builtin_prefetch(own[row].data()); });
    }
  }
  for (size_t i = 0; i < count; ++i) {
    for_rows(i, [&](uint32_t row) {
      if (own[row] == keys[i]) (*numbers)[i] = row + 1;
    });
  }
}

ItemTable::Place ItemTable::AtOther(uint32_t number) const {
  const auto behind =
      std::upper_bound(sources_.begin(), sources_.end(), number,
                       [](uint32_t wanted, const Source& source) { return wanted < source.first; });
  const Source& source = *(behind - 1);
  return {source.columns, number - source.first};
}

}  // namespace colcast::items
