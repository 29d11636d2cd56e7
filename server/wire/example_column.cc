#include "server/wire/example_column.h"

#include <algorithm>
#include <cstring>

#include "server/wire/example_values.h"

namespace colcast {
namespace {

void AppendTimes(std::string_view bytes, int64_t times, std::string* out) {
  for (int64_t i = 0; i < times; ++i) out->append(bytes);
}

}  // namespace

bool ExampleColumn::Begin(const ExampleFeatures::Entry& entry, int64_t rows,
                          std::string_view feature) {
  entry_ = &entry;
  rows_ = rows;
  rows_held_ = 1;
  first_ = feature;
  values_.clear();
  lengths_.clear();
  ends_.clear();
  if (fixed() && dtype() != DT_STRING) values_.resize(entry.size * NumberSize(dtype()));
  if (!Append(feature, 0)) return false;
  first_size_ = values_.size();
  return true;
}

bool ExampleColumn::SetOther(int64_t row, std::string_view feature) {
  if (once()) HoldRows(row);
  return Append(feature, row);
}

bool ExampleColumn::Append(std::string_view feature, int64_t row) {
  if (feature.empty()) return AppendMissing(row);
  const int64_t size = entry_->size;
  if (fixed() && dtype() != DT_STRING) {
    char* const out = values_.data() + row * size * NumberSize(dtype());
    return ReadNumbers(dtype(), feature, size, out) == size;
  }
  const int64_t count = AppendValues(dtype(), feature, &values_);
  if (count == kUnreadable) return false;
  if (fixed()) return count == size;
  lengths_.push_back(count);
  ends_.push_back(values_.size());
  return count % size == 0;
}

bool ExampleColumn::AppendMissing(int64_t row) {
  const std::string& defaults = entry_->feature.default_values;
  if (!fixed()) {
    lengths_.push_back(0);
    ends_.push_back(values_.size());
    return true;
  }
  if (entry_->feature.required) return false;
  if (dtype() == DT_STRING) {
    values_ += defaults;
  } else if (!defaults.empty()) {
    std::memcpy(values_.data() + row * defaults.size(), defaults.data(), defaults.size());
  }
  return true;
}

void ExampleColumn::Repeat(int64_t row, int64_t times) {
  if (times == 0) return;
  if (fixed() && dtype() != DT_STRING) {
    char* const begin = values_.data();
    for (int64_t i = 0; i < times && first_size_ > 0; ++i) {
      std::memcpy(begin + (row + i) * first_size_, begin, first_size_);
    }
    return;
  }
  // Reserves memory first, so that row 0 stays in place while it is copied.
  values_.reserve(values_.size() + times * first_size_);
  AppendTimes(std::string_view(values_).substr(0, first_size_), times, &values_);
  if (fixed()) return;
  for (int64_t i = 0; i < times; ++i) {
    lengths_.push_back(lengths_[0]);
    ends_.push_back(ends_.back() + first_size_);
  }
}

void ExampleColumn::HoldRows(int64_t rows) {
  rows_held_ = rows_;
  if (fixed() && dtype() != DT_STRING) values_.resize(first_size_ * rows_);
  Repeat(1, rows - 1);
}

int64_t ExampleColumn::Longest() const {
  return *std::max_element(lengths_.begin(), lengths_.end());
}

int64_t ExampleColumn::Elements() const {
  return rows_held_ * (fixed() ? entry_->size : Longest());
}

void ExampleColumn::Pad(int64_t longest) {
  const ExampleFeature& feature = entry_->feature;
  const bool strings = feature.dtype == DT_STRING;
  std::string padding =
      feature.kind == FeatureKind::kFixedLenSequence ? feature.default_values : std::string();
  if (padding.empty()) {
    padding = strings ? StringRecord("") : std::string(NumberSize(feature.dtype), '\0');
  }
  padded_.clear();
  size_t begin = 0;
  for (size_t row = 0; row < lengths_.size(); ++row) {
    padded_.append(values_, begin, ends_[row] - begin);
    AppendTimes(padding, longest - lengths_[row], &padded_);
    begin = ends_[row];
  }
}

Column* ExampleColumn::AddColumn(std::string_view name, DataType dtype,
                                 std::vector<Column>* columns, size_t* count) {
  if (*count == columns->size()) columns->emplace_back();
  Column* const column = &(*columns)[(*count)++];
  column->name = name;
  column->dtype = dtype;
  column->unknown_rank = false;
  column->dims.assign(1, rows_held_);
  column->values.Clear();
  return column;
}

void ExampleColumn::Finish(std::vector<Column>* columns, size_t* count) {
  const ExampleFeature& feature = entry_->feature;
  Column* const column = AddColumn(feature.name, feature.dtype, columns, count);
  const std::string* values = &values_;
  int64_t elements = Elements();
  if (!fixed()) {
    const int64_t longest = Longest();
    column->dims.push_back(longest / entry_->size);
    const auto differs = [longest](int64_t length) { return length != longest; };
    if (std::any_of(lengths_.begin(), lengths_.end(), differs)) {
      Pad(longest);
      values = &padded_;
    }
  }
  column->dims.insert(column->dims.end(), feature.shape.begin(), feature.shape.end());
  if (feature.dtype == DT_STRING) {
    column->values.count = elements;
    if (elements > 0) column->values.messages.emplace_back(*values);
  } else {
    column->values.tensor_content = Bytes(*values);
  }
  if (entry_->length_name.empty()) return;
  Column* const lengths = AddColumn(entry_->length_name, DT_INT64, columns, count);
  lengths->values.tensor_content = Bytes(lengths_.data(), lengths_.size() * sizeof(int64_t));
}

}  // namespace colcast
