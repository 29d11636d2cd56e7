#include "server/engine/input.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "server/engine/rows.h"
#include "server/engine/status.h"
#include "server/wire/column.h"
#include "tensorflow/core/platform/tstring.h"
#include "tf_patches/repeat_row.h"

namespace colcast::engine {

namespace {

using tensorflow::Tensor;
using tensorflow::tstring;

bool CanBeFilled(const Tensor& tensor, tensorflow::DataType dtype,
                 const tensorflow::TensorShape& shape) {
  return tensor.dtype() == dtype && tensor.shape() == shape && tensor.RefCountIsOne();
}

int64_t BytesOf(const ColumnValues& values) {
  size_t bytes = values.tensor_content.size() + values.payload.size();
  for (const Bytes& message : values.messages) bytes += message.size();
  for (const Bytes& value : values.strings) bytes += value.size();
  return static_cast<int64_t>(bytes);
}

// Checks quickly whether a column has one value per element, as nearly all do, and sets their
// number. Leaves other valid forms, and errors, to the general check.
bool HasAllValues(const Column& column, int64_t* count) {
  constexpr size_t kMostDims = 8;
  constexpr int64_t kMostElements = int64_t{1} << 30;
  if (column.unknown_rank || column.dims.size() > kMostDims) return false;
  int64_t elements = 1;
  for (const int64_t dim : column.dims) {
    if (dim < 0 || dim > kMostElements) return false;
    elements *= dim;
    if (elements > kMostElements) return false;
  }
  *count = elements;
  const ColumnValues& values = column.values;
  if (values.stored != nullptr) return true;
  if (values.ignored_field != 0) return false;
  if (values.tensor_content.empty()) {
    return elements > 0 && values.count == elements &&
           ValuesPerElement(ValueFieldOf(column.dtype)) == 1;
  }
  const size_t element_size = ElementSize(column.dtype);
  return element_size > 0 && values.tensor_content.size() == elements * element_size;
}

}  // namespace

absl::Status Input::Check() {
  wire_bytes_ = BytesOf(column_->values);
  if (HasAllValues(*column_, &count_)) return absl::OkStatus();
  if (Status status = ElementCount(*column_, &count_); !status.ok()) return ToAbsl(status);
  return ToAbsl(CheckValues(*column_, count_));
}

double Input::TensorBytes() const {
  const auto count = static_cast<double>(count_);
  if (dtype() != tensorflow::DT_STRING) return count * ElementSize(column_->dtype);
  return count * sizeof(tstring) + static_cast<double>(WireBytes()) +
         RepeatedStringBytes(*column_, count_);
}

double Input::ExtraBytes(int64_t copies) const {
  return std::max(0.0, TensorBytes() * copies - static_cast<double>(WireBytes()));
}

absl::Status Input::Decode(Tensor* out, int64_t at) const {
  if (dtype() == tensorflow::DT_STRING) {
    StringFiller filler(static_cast<tstring*>(out->data()) + at);
    return ToAbsl(VisitStrings(*column_, count_, &filler));
  }
  char* const begin = static_cast<char*>(out->data()) + at * tensorflow::DataTypeSize(dtype());
  return ToAbsl(CopyValues(*column_, count_, begin));
}

absl::Status Input::BuildTensor(const tensorflow::TensorShape& target, Tensor* out) const {
  if (!CanBeFilled(*out, dtype(), target)) {
    if (absl::Status status = MakeTensor(dtype(), target, out); !status.ok()) return status;
  }
  if (target.num_elements() == 0) return absl::OkStatus();
  if (absl::Status status = Decode(out, 0); !status.ok()) return status;
  if (target.num_elements() != count_) RepeatFirstRow(out);
  return absl::OkStatus();
}

TensorView::TensorView(std::string_view name, const Tensor& tensor) {
  view_.name = name;
  view_.dtype = static_cast<colcast::DataType>(tensor.dtype());
  for (int d = 0; d < tensor.dims(); ++d) view_.dims.push_back(tensor.dim_size(d));
  ColumnValues& values = view_.values;
  const int64_t count = tensor.NumElements();
  if (tensor.dtype() != tensorflow::DT_STRING) {
    values.tensor_content = Bytes(tensor.data(), count * tensorflow::DataTypeSize(tensor.dtype()));
    return;
  }
  const auto* const strings = static_cast<const tstring*>(tensor.data());
  values.strings.reserve(count);
  for (int64_t i = 0; i < count; ++i) values.AddString(Bytes(strings[i].data(), strings[i].size()));
}

// Copies of a string tensor share its buffer, so views of the strings stay valid, even of short
// strings stored inline.
TensorInput::TensorInput(std::string_view name, Tensor tensor)
    : TensorView(name, tensor), Input(view_), tensor_(std::move(tensor)) {
  static_cast<void>(Check());  // checks only the sizes, which are right
}

absl::Status TensorInput::BuildTensor(const tensorflow::TensorShape& target, Tensor* out) const {
  return RepeatRow(tensor_, target, out);
}

namespace {

// Writes the strings of picked rows.
class StringPicker final : public StringVisitor {
 public:
  StringPicker(const std::vector<int32_t>& places, int64_t row_elements, tstring* out)
      : places_(places), row_elements_(row_elements), out_(out) {}

  void Set(int64_t index, const Bytes& value) override {
    const int32_t place = places_[index / row_elements_];
    if (place < 0) return;
    tstring& target = out_[place * row_elements_ + index % row_elements_];
    target.resize_uninitialized(value.size());
    value.CopyTo(target.mdata());
  }

 private:
  const std::vector<int32_t>& places_;
  const int64_t row_elements_;
  tstring* const out_;
};

}  // namespace

absl::Status PickedInput::BuildTensor(const tensorflow::TensorShape& target, Tensor* out) const {
  if (absl::Status status = MakeTensor(dtype(), target, out); !status.ok()) return status;
  if (target.num_elements() == 0) return absl::OkStatus();
  if (const StoredValues* const stored = column_->column().values.stored; stored != nullptr) {
    CopyStored(*stored, out);
    return absl::OkStatus();
  }
  const int64_t row_elements = target.num_elements() / target.dim_size(0);
  if (dtype() == tensorflow::DT_STRING) {
    StringPicker picker(*places_, row_elements, static_cast<tstring*>(out->data()));
    return ToAbsl(VisitStrings(column_->column(), column_->count(), &picker));
  }
  const size_t row_bytes = row_elements * tensorflow::DataTypeSize(dtype());
  auto* at = static_cast<char*>(out->data());
  for (const int64_t row : *rows_) {
    std::memcpy(at, row_keys_->at(index_, row), row_bytes);
    at += row_bytes;
  }
  return absl::OkStatus();
}

void PickedInput::CopyStored(const StoredValues& stored, Tensor* out) const {
  const Span<int64_t> rows = *rows_;
  if (dtype() == tensorflow::DT_STRING) {
    StringFiller filler(static_cast<tstring*>(out->data()));
    stored.Visit(&rows, &filler);
  } else {
    stored.Copy(&rows, out->data());
  }
}

bool HasRows(const DeclaredInput& input, const Input* column, int64_t rows) {
  return column != nullptr && input.batched() && !column->dims().empty() &&
         column->dims()[0] == rows;
}

bool ReadLengths(const Input& column, std::vector<int64_t>* lengths) {
  if (column.dtype() != tensorflow::DT_INT64) return false;
  lengths->resize(column.count());
  return CopyValues(column.column(), column.count(), lengths->data()).ok();
}

}  // namespace colcast::engine
