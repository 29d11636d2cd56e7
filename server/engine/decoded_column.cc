#include "server/engine/decoded_column.h"

#include <utility>

#include "tensorflow/core/platform/tstring.h"
#include "tf_patches/repeat_row.h"

namespace colcast::engine {

using tensorflow::Tensor;
using tensorflow::tstring;

void TensorView::Set(std::string_view name, const Tensor& tensor) {
  view.Clear();
  view.name = name;
  view.dtype = static_cast<DataType>(tensor.dtype());
  for (int d = 0; d < tensor.dims(); ++d) view.dims.push_back(tensor.dim_size(d));
  ColumnValues& values = view.values;
  const int64_t count = tensor.NumElements();
  if (tensor.dtype() != tensorflow::DT_STRING) {
    values.tensor_content = Bytes(tensor.data(), count * tensorflow::DataTypeSize(tensor.dtype()));
    return;
  }
  const auto* const strings = static_cast<const tstring*>(tensor.data());
  values.strings.reserve(count);
  for (int64_t i = 0; i < count; ++i) values.AddString(Bytes(strings[i].data(), strings[i].size()));
}

// The strings of tensors that share memory lie at the same place, short ones within them.
void DecodedColumn::Set(std::string_view name, Tensor tensor) {
  tensor_ = std::move(tensor);
  TensorView::Set(name, tensor_);
  static_cast<WireColumn&>(*this) = WireColumn(view);
  static_cast<void>(Check());  // from sizes, which are right
}

absl::Status DecodedColumn::BuildTensor(const tensorflow::TensorShape& target, Tensor* out) const {
  return RepeatRow(tensor_, target, out);
}

}  // namespace colcast::engine
