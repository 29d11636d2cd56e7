#include "server/wire/example_column.h"

#include <algorithm>
#include <cstring>

#include "server/wire/reader.h"

namespace colcast {
namespace {

// Returned instead of a count for a Feature that is malformed, that has several lists or a list of
// another dtype, or whose list is neither one packed run nor all unpacked values.
constexpr int64_t kUnreadable = -1;

constexpr uint32_t kBytesListTag = MakeTag(1, kLengthType);
constexpr uint32_t kFloatListTag = MakeTag(2, kLengthType);
constexpr uint32_t kInt64ListTag = MakeTag(3, kLengthType);
constexpr uint32_t kPackedTag = MakeTag(1, kLengthType);  // tag of "value" in every list
constexpr uint32_t kVarintTag = MakeTag(1, kVarintType);
constexpr uint32_t kFixed32Tag = MakeTag(1, kFixed32Type);
constexpr uint32_t kStringValTag = MakeTag(8, kLengthType);

uint32_t ListTagOf(DataType dtype) {
  return dtype == DT_STRING ? kBytesListTag : dtype == DT_FLOAT ? kFloatListTag : kInt64ListTag;
}

// Enters the record whose tag was read. Returns false unless it spans all remaining bytes.
bool EnterOnly(FlatReader* reader) {
  FlatReader nested;
  if (!reader->ReadNested(&nested) || !reader->done()) return false;
  *reader = nested;
  return true;
}

// Opens the list of `dtype`, which must span the whole Feature.
bool OpenList(DataType dtype, std::string_view feature, FlatReader* list) {
  *list = FlatReader(Bytes(feature));
  return list->SkipTag(ListTagOf(dtype)) && EnterOnly(list);
}

void Put(const void* value, size_t size, int64_t index, void* out) {
  std::memcpy(static_cast<uint8_t*>(out) + index * size, value, size);
}

int64_t ReadInt64s(FlatReader list, int64_t most, void* out) {
  const bool packed = list.SkipTag(kPackedTag);
  if (packed && !EnterOnly(&list)) return kUnreadable;
  int64_t count = 0;
  while (!list.done()) {
    if (!packed && !list.SkipTag(kVarintTag)) return kUnreadable;
    uint64_t value;
    if (count == most || !list.ReadVarint(&value)) return kUnreadable;
    Put(&value, sizeof(value), count++, out);
  }
  return count;
}

int64_t ReadFloats(FlatReader list, int64_t most, void* out) {
  constexpr size_t kSize = sizeof(float);
  if (list.SkipTag(kPackedTag)) {
    if (!EnterOnly(&list) || list.Rest().size() % kSize != 0) return kUnreadable;
    const auto count = static_cast<int64_t>(list.Rest().size() / kSize);
    if (count > most) return kUnreadable;
    list.Rest().CopyTo(out);
    return count;
  }
  int64_t count = 0;
  for (; !list.done(); list.Skip(kSize)) {
    if (!list.SkipTag(kFixed32Tag) || list.Rest().size() < kSize || count == most) {
      return kUnreadable;
    }
    Put(list.Rest().data(), kSize, count++, out);
  }
  return count;
}

// BytesList.value and TensorProto.string_val differ only in their tag.
int64_t AppendStrings(FlatReader list, std::string* out) {
  const size_t end = out->size() + list.Rest().size();
  out->append(list.Rest().view());
  int64_t count = 0;
  for (; !list.done(); ++count) {
    (*out)[end - list.Rest().size()] = static_cast<char>(kStringValTag);
    Bytes ignored_value;
    if (!list.SkipTag(kPackedTag) || !list.ReadBytes(&ignored_value)) return kUnreadable;
  }
  return count;
}

// Writes the numbers of `feature`, which must not be empty, to `out`. Returns their count, or
// kUnreadable, also if there are more than `most` numbers.
int64_t ReadNumbers(DataType dtype, std::string_view feature, int64_t most, void* out) {
  FlatReader list;
  if (!OpenList(dtype, feature, &list)) return kUnreadable;
  return dtype == DT_FLOAT ? ReadFloats(list, most, out) : ReadInt64s(list, most, out);
}

// Appends the values of `feature`, which must not be empty, to `out`: numbers in memory layout,
// strings as records of TensorProto.string_val. Returns their count, or kUnreadable; in that case
// the appended bytes are unspecified.
int64_t AppendValues(DataType dtype, std::string_view feature, std::string* out) {
  FlatReader list;
  if (!OpenList(dtype, feature, &list)) return kUnreadable;
  if (dtype == DT_STRING) return AppendStrings(list, out);
  const size_t before = out->size(), size = ElementSize(dtype);
  // An upper bound: every number takes at least one byte, and a float takes its full size.
  const size_t most = dtype == DT_FLOAT ? list.Rest().size() / size : list.Rest().size();
  out->resize(before + most * size);
  char* const values = out->data() + before;
  const int64_t count =
      dtype == DT_FLOAT ? ReadFloats(list, most, values) : ReadInt64s(list, most, values);
  out->resize(before + std::max<int64_t>(count, 0) * size);
  return count;
}

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
