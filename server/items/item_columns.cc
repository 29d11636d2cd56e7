#include "server/items/item_columns.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "server/wire/column.h"
#include "server/wire/data_type.h"
#include "server/wire/reader.h"

namespace colcast::items {
namespace {

// The rows that all columns of one request share.
struct Rows {
  std::shared_ptr<const ItemTable> table;
  std::vector<uint32_t> numbers;
  StoredRows stored;
};

using Places = StoredValues::Places;

// Calls visit(i, column, row) for the i-th of the rows at `places`.
template <typename Visit>
void ForEachRow(const Rows& rows, size_t feature, Places places, Visit&& visit) {
  const size_t count = places == nullptr ? rows.numbers.size() : places->size();
  for (size_t i = 0; i < count; ++i) {
    const ItemTable::Place at = rows.table->At(rows.numbers[places == nullptr ? i : (*places)[i]]);
    visit(i, (*at.columns)[feature], at.row);
  }
}

// Prefetches the rows' values or, for lists, only their splits, so that cache misses overlap.
// `row_values` is the number of values per row.
void PrefetchRows(const Rows& rows, size_t feature, int64_t row_values, Places places) {
  const DataType dtype = rows.table->features()[feature].feature.dtype;
  const size_t size = dtype == DT_STRING ? 0 : NumberSize(dtype);
  ForEachRow(rows, feature, places, [&](size_t, const TableColumn& column, uint32_t row) {
    const int64_t first = row * row_values;
    if (!column.splits.empty()) {
      __builtin_prefetch(&column.splits[row]);
    } else if (size == 0) {
      __builtin_prefetch(&column.texts.offsets[first]);
    } else {
      __builtin_prefetch(column.numbers + first * size);
    }
  });
  if (size > 0) return;
  ForEachRow(rows, feature, places, [&](size_t, const TableColumn& column, uint32_t row) {
    if (!column.splits.empty()) return;
    __builtin_prefetch(column.texts.bytes + column.texts.offsets[row * row_values]);
  });
}

int64_t LengthOf(const TableColumn& column, uint32_t row) {
  return column.splits[row + 1] - column.splits[row];
}

template <size_t kBytes>
void CopyFixed(const Rows& rows, size_t feature, Places places, void* out) {
  auto* const begin = static_cast<uint8_t*>(out);
  ForEachRow(rows, feature, places, [&](size_t i, const TableColumn& column, uint32_t row) {
    std::memcpy(begin + i * kBytes, column.numbers + size_t{row} * kBytes, kBytes);
  });
}

// The string that pads lists of strings.
std::string_view PaddingText(const ExampleFeature& feature) {
  if (feature.kind != FeatureKind::kFixedLenSequence) return {};
  Reader records{Bytes(feature.default_values)};
  uint32_t tag;
  Bytes text;
  return records.ReadTag(&tag) && records.ReadBytes(&text) ? text.view() : std::string_view();
}

class FeatureValues final : public StoredValues {
 public:
  // `longest` is the longest list's length, in steps.
  FeatureValues(const Rows* of, size_t feature, int64_t longest)
      : StoredValues(&of->stored),
        of_(*of),
        feature_(feature),
        entry_(of->table->features()[feature]),
        is_list_(entry_.feature.kind != FeatureKind::kFixedLen),
        row_values_(is_list_ ? longest * entry_.size : entry_.size) {}

  bool padded() const override { return is_list_; }

  void Copy(Places places, void* out) const override {
    const size_t size = NumberSize(entry_.feature.dtype);
    PrefetchRows(of_, feature_, entry_.size, places);
    const size_t row_bytes = row_values_ * size;
    if (!is_list_ && row_bytes == sizeof(float)) {
      return CopyFixed<sizeof(float)>(of_, feature_, places, out);
    }
    if (!is_list_ && row_bytes == sizeof(int64_t)) {
      return CopyFixed<sizeof(int64_t)>(of_, feature_, places, out);
    }
    auto* const begin = static_cast<uint8_t*>(out);
    ForEachRow(of_, feature_, places, [&](size_t i, const TableColumn& column, uint32_t row) {
      const auto [first, last] = ValuesOf(column, row);
      const size_t bytes = (last - first) * size;
      uint8_t* const at = begin + i * row_bytes;
      if (bytes > 0) std::memcpy(at, column.numbers + first * size, bytes);
      Pad(at + bytes, at + row_bytes);
    });
  }

  void Visit(Places places, StringVisitor* visitor) const override {
    const Bytes padding = PaddingText(entry_.feature);
    PrefetchRows(of_, feature_, entry_.size, places);
    ForEachRow(of_, feature_, places, [&](size_t i, const TableColumn& column, uint32_t row) {
      auto index = static_cast<int64_t>(i) * row_values_;
      const int64_t end = index + row_values_;
      const auto [first, last] = ValuesOf(column, row);
      for (int64_t k = first; k < last; ++k) visitor->Set(index++, column.texts[k]);
      while (index < end) visitor->Set(index++, padding);
    });
  }

 private:
  // The range of a row's values within its column.
  std::pair<int64_t, int64_t> ValuesOf(const TableColumn& column, uint32_t row) const {
    if (!is_list_) return {row * entry_.size, (row + 1) * entry_.size};
    return {column.splits[row] * entry_.size, column.splits[row + 1] * entry_.size};
  }

  void Pad(uint8_t* begin, const uint8_t* end) const {
    const std::string& padding = entry_.feature.default_values;
    if (entry_.feature.kind != FeatureKind::kFixedLenSequence || padding.empty()) {
      std::fill(begin, const_cast<uint8_t*>(end), uint8_t{0});
      return;
    }
    for (; begin != end; begin += padding.size()) {
      std::memcpy(begin, padding.data(), padding.size());
    }
  }

  const Rows& of_;
  const size_t feature_;
  const ExampleFeatures::Entry& entry_;
  const bool is_list_;
  const int64_t row_values_;
};

// The number of steps in each row's list.
class LengthValues final : public StoredValues {
 public:
  LengthValues(const Rows* of, size_t feature)
      : StoredValues(&of->stored), of_(*of), feature_(feature) {}

  void Copy(Places places, void* out) const override {
    auto* const lengths = static_cast<int64_t*>(out);
    ForEachRow(of_, feature_, places, [&](size_t i, const TableColumn& column, uint32_t row) {
      lengths[i] = LengthOf(column, row);
    });
  }
  void Visit(Places, StringVisitor*) const override {}

 private:
  const Rows& of_;
  const size_t feature_;
};

// The data to which the columns point; the request keeps it alive.
struct ItemRows : Rows {
  std::vector<FeatureValues> values;  // reserved, because columns point to the elements
  std::vector<LengthValues> lengths;
};

int64_t LongestOf(const Rows& rows, size_t feature) {
  int64_t longest = 0;
  ForEachRow(rows, feature, nullptr, [&](size_t, const TableColumn& column, uint32_t row) {
    longest = std::max(longest, LengthOf(column, row));
  });
  return longest;
}

Column* AddColumn(std::string_view name, DataType dtype, const StoredValues& values,
                  DecodedRequest* request) {
  Column* const column = request->AddColumn(name);
  column->dtype = dtype;
  column->dims.push_back(static_cast<int64_t>(values.rows().numbers.size()));
  column->values.stored = &values;
  return column;
}

// The first property in which the features differ; empty if they are equal.
std::string_view Difference(const ExampleFeature& a, const ExampleFeature& b) {
  if (a.kind != b.kind) return "kind";
  if (a.dtype != b.dtype) return "dtype";
  if (a.shape != b.shape) return "shape";
  return a.required == b.required && a.default_values == b.default_values ? "" : "default";
}

}  // namespace

void AddColumns(std::shared_ptr<const ItemTable> table, std::vector<uint32_t> numbers,
                Span<size_t> features, DecodedRequest* request) {
  const auto rows = std::make_shared<ItemRows>();
  rows->table = std::move(table);
  rows->numbers = std::move(numbers);
  rows->stored = {rows->table->number(), rows->numbers};
  rows->values.reserve(features.size());
  rows->lengths.reserve(features.size());
  request->Keep(rows);
  for (const size_t i : features) {
    const auto& [feature, length_name, size] = rows->table->features()[i];
    const bool is_list = feature.kind != FeatureKind::kFixedLen;
    const int64_t longest = is_list ? LongestOf(*rows, i) : 0;
    rows->values.emplace_back(rows.get(), i, longest);
    std::vector<int64_t>& dims =
        AddColumn(feature.name, feature.dtype, rows->values.back(), request)->dims;
    if (is_list) dims.push_back(longest);
    dims.insert(dims.end(), feature.shape.begin(), feature.shape.end());
    if (length_name.empty()) continue;
    AddColumn(length_name, DT_INT64, rows->lengths.emplace_back(rows.get(), i), request);
  }
}

ModelFeatures ReadModelFeatures(const rapidjson::Document& record) {
  ModelFeatures features;
  ForEachMember(record, "signatures", [&](const auto&, const rapidjson::Value& signature) {
    ForEachMember(signature, "features", [&](const auto& name, const rapidjson::Value& recorded) {
      ExampleFeature feature;
      feature.name = name;
      std::string domain;
      if (ReadText(recorded, "side", &domain) && ReadFeature(recorded, &feature)) {
        features[domain].emplace(name, feature);
      }
    });
  });
  return features;
}

Status CheckFeatures(const ModelFeatures& model, const std::string& domain,
                     const ExampleFeatures& table) {
  const auto of_domain = model.find(domain);
  if (of_domain == model.end()) {
    return FailedPrecondition("the model's export recorded no feature of the domain \"",
                              Readable(domain), "\" (assets.extra/colcast.json)");
  }
  for (const auto& [name, feature] : of_domain->second) {
    const size_t place = table.Find(name);
    if (place == table.size()) {
      return FailedPrecondition("the table has no feature ", Quoted(name),
                                ", which the model reads");
    }
    const std::string_view difference = Difference(feature, table[place].feature);
    if (!difference.empty()) {
      return FailedPrecondition("feature ", Quoted(name), " has a different ", difference,
                                " in the table than in the model");
    }
  }
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string& name = table[i].feature.name;
    if (of_domain->second.count(name) == 0) {
      return FailedPrecondition("the table has a feature ", Quoted(name),
                                ", which the model does not read");
    }
  }
  return OkStatus();
}

}  // namespace colcast::items
