#include "serving_patches/column_source.h"

#include "tf_patches/repeat_row.h"

namespace colcast {

ProtoColumn::ProtoColumn(const tensorflow::TensorProto& proto) : proto_(&proto) {
  for (const auto& dim : proto.tensor_shape().dim()) dims_.push_back(dim.size());
}

absl::Status ProtoColumn::BuildTensor(const tensorflow::TensorShape& target,
                                      tensorflow::Tensor* out) const {
  return TensorFromProtoRepeated(*proto_, target, out);
}

}  // namespace colcast
