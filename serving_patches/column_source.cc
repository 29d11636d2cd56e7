#include "serving_patches/column_source.h"

#include <algorithm>

#include "tensorflow/core/platform/tstring.h"
#include "tf_patches/repeat_row.h"

namespace colcast {

ProtoColumn::ProtoColumn(const tensorflow::TensorProto& proto) : proto_(&proto) {
  for (const auto& dim : proto.tensor_shape().dim()) dims_.push_back(dim.size());
}

double ProtoColumn::ExtraBytes(int64_t copies) const {
  double elements = 1;
  for (const int64_t dim : dims_) elements *= dim;
  const bool strings = dtype() == tensorflow::DT_STRING;
  double bytes =
      elements * (strings ? sizeof(tensorflow::tstring) : tensorflow::DataTypeSize(dtype()));
  const auto sent = static_cast<double>(proto_->ByteSizeLong());
  if (strings) {
    const int sent_strings = proto_->string_val_size();
    const double repeated = std::max(0.0, elements - sent_strings);
    bytes += sent;
    if (sent_strings > 0) bytes += repeated * proto_->string_val(sent_strings - 1).size();
  }
  return std::max(0.0, bytes * copies - sent);
}

absl::Status ProtoColumn::BuildTensor(const tensorflow::TensorShape& target,
                                      tensorflow::Tensor* out) const {
  return TensorFromProtoRepeated(*proto_, target, out);
}

}  // namespace colcast
