#include "server/engine/decoded_column.h"

#include <utility>

#include "tensorflow/core/platform/tstring.h"
#include "tf_patches/repeat_row.h"

namespace colcast::engine {

using tensorflow::Tensor;
using tensorflow::tstring;

TensorView::TensorView(std::string_view name, const Tensor& tensor) {
  view_.name = name;
  view_.dtype = static_cast<DataType>(tensor.dtype());
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
DecodedColumn::DecodedColumn(std::string_view name, Tensor tensor)
    : TensorView(name, tensor), WireColumn(view_), tensor_(std::move(tensor)) {
  static_cast<void>(Check());  // only the sizes are checked, and they are right
}

absl::Status DecodedColumn::BuildTensor(const tensorflow::TensorShape& target, Tensor* out) const {
  return RepeatRow(tensor_, target, out);
}

}  // namespace colcast::engine
