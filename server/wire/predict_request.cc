#include "server/wire/predict_request.h"

#include <utility>

namespace colcast {
namespace {

// The columns' memory is freed after a request with more columns than this.
constexpr size_t kMaxKeptColumns = 4096;

}  // namespace

size_t DecodedRequest::MemoryBytes() const {
  size_t bytes = columns_.capacity() * sizeof(Column);
  for (const Column& column : columns_) {
    bytes += column.dims.capacity() * sizeof(int64_t);
    bytes += column.values.messages.capacity() * sizeof(Bytes);
    bytes += column.values.strings.capacity() * sizeof(Bytes);
  }
  return bytes;
}

void DecodedRequest::Clear() {
  ClearForReuse(&model_spec.name);
  model_spec.version.reset();
  model_spec.version_label.reset();
  ClearForReuse(&model_spec.signature_name);
  id = {};
  if (column_count_ > kMaxKeptColumns) {
    columns_ = std::vector<Column>();
    names_ = NameTable();
    names_before_ = std::vector<std::string>();
    made_of_names_ = nullptr;
  }
  as_decoded_ = false;
  column_count_ = 0;
  stored_.clear();
  names_.Clear();
  ClearForReuse(&output_filter);
  kept_.clear();
}

Column* DecodedRequest::AddColumn(std::string_view name) {
  as_decoded_ = false;
  if (column_count_ == columns_.size()) columns_.emplace_back();
  Column* const column = &columns_[column_count_++];
  column->Clear();
  column->name = name;
  return column;
}

void DecodedRequest::RemoveColumn(size_t index) {
  std::swap(columns_[index], columns_[--column_count_]);
  names_.Clear();
  as_decoded_ = false;
}

const Column* DecodedRequest::Find(std::string_view name) const {
  const size_t index = AllNames().Find(name);
  return index == column_count_ ? nullptr : &columns_[index];
}

NameTable& DecodedRequest::AllNames() const {
  while (names_.size() < column_count_) names_.FindOrAdd(columns_[names_.size()].name);
  return names_;
}

void DecodedRequest::RememberNames(bool as_before) {
  as_decoded_ = true;
  if (as_before && names_before_.size() == column_count_) return;
  made_of_names_ = nullptr;
  names_before_.resize(column_count_);
  for (size_t i = 0; i < column_count_; ++i) names_before_[i] = columns_[i].name;
}

}  // namespace colcast
