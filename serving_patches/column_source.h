// A column of a request before it becomes a tensor. Hides from the expansion rule how a request
// arrives: as TensorProtos in the fork, as wire bytes in the native server.
#ifndef COLCAST_SERVING_PATCHES_COLUMN_SOURCE_H_
#define COLCAST_SERVING_PATCHES_COLUMN_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"

namespace colcast {

class ColumnSource {
 public:
  virtual ~ColumnSource() = default;

  virtual tensorflow::DataType dtype() const = 0;

  // The dimensions as sent, unchecked. The span lives as long as the source.
  virtual absl::Span<const int64_t> dims() const = 0;

  // How many bytes the column's tensor, with its row repeated `copies` times, needs beyond the
  // bytes that were sent: numbers may be shorter on the wire, a short list repeats its last element
  // to fill the shape, and the row is copied. Computed from sizes alone. A double, because it
  // cannot overflow. REQUIRES that dims() have passed the expansion rule.
  virtual double ExtraBytes(int64_t copies) const = 0;

  // Decodes the column into a tensor of shape `target`, which is dims() or, if the column has one
  // row, dims() with another number of rows; then the row is repeated. Overwrites `*out`, and may
  // reuse its buffer unless that is shared. Returns INVALID_ARGUMENT for content that does not fit
  // dims(); the caller adds the input's alias.
  virtual absl::Status BuildTensor(const tensorflow::TensorShape& target,
                                   tensorflow::Tensor* out) const = 0;
};

// A named column. The caller owns both and keeps them until the call returns.
struct ReceivedInput {
  absl::string_view alias;
  const ColumnSource* source = nullptr;
};

// A column sent as a TensorProto, which must outlive this object.
class ProtoColumn final : public ColumnSource {
 public:
  explicit ProtoColumn(const tensorflow::TensorProto& proto);

  tensorflow::DataType dtype() const override { return proto_->dtype(); }
  absl::Span<const int64_t> dims() const override { return dims_; }
  double ExtraBytes(int64_t copies) const override;
  absl::Status BuildTensor(const tensorflow::TensorShape& target,
                           tensorflow::Tensor* out) const override;

 private:
  const tensorflow::TensorProto* proto_;
  Dims dims_;
};

}  // namespace colcast

#endif  // COLCAST_SERVING_PATCHES_COLUMN_SOURCE_H_
