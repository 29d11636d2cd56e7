// A column of a request before it becomes a tensor: the interface between the expansion rule and
// the form in which a request arrives (TensorProtos in the fork, wire bytes in the native server).
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

  // The memory of the column's tensor, with its row repeated `copies` times, beyond the bytes that
  // were sent: for numbers that are shorter on the wire, for elements that repeat to fill the shape
  // of a short list, and for copies of the row. Computed from sizes alone. A double, because it
  // cannot overflow. REQUIRES that dims() have passed the expansion rule.
  virtual double ExtraBytes(int64_t copies) const = 0;

  // Decodes the column into a tensor of shape `target`: dims(), or, for a column of one row, dims()
  // with another first dimension, to which the row is repeated. Overwrites `*out`, and may reuse
  // the buffer that it held unless it is shared. Returns INVALID_ARGUMENT for content that does not
  // fit dims(); the caller adds the input's alias.
  virtual absl::Status BuildTensor(const tensorflow::TensorShape& target,
                                   tensorflow::Tensor* out) const = 0;
};

// A named column. The caller owns name and column, and keeps them until the call returns.
struct ReceivedInput {
  absl::string_view alias;
  const ColumnSource* source = nullptr;
};

// A column in a TensorProto, which must outlive it.
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
