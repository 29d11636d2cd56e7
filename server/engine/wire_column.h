// A received column as input of the expansion rule: values are copied once, from gRPC's slices to
// the tensor.
#ifndef COLCAST_SERVER_ENGINE_WIRE_COLUMN_H_
#define COLCAST_SERVER_ENGINE_WIRE_COLUMN_H_

#include <string_view>

#include "absl/status/status.h"
#include "server/wire/predict_request.h"
#include "serving_patches/column_source.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

class WireColumn : public ColumnSource {
 public:
  // `column` must outlive this object.
  explicit WireColumn(const Column& column)
      : column_(&column),
        dims_(column.dims),
        dtype_(static_cast<tensorflow::DataType>(column.dtype)) {}

  // Checks by sizes alone that the values fit the shape. Call once for every column of a request
  // before allocating the first tensor, so that a column with wrong dimensions costs no memory. All
  // methods below REQUIRE that it returned OK.
  absl::Status Check();

  tensorflow::DataType dtype() const override { return dtype_; }
  absl::Span<const int64_t> dims() const override { return dims_; }

  const Column& column() const { return *column_; }
  int64_t count() const { return count_; }  // elements

  // The approximate bytes of the values in the message; may include field headers.
  int64_t WireBytes() const { return wire_bytes_; }

  // Decodes all sent values into `out`, starting at element `at`. Returns INVALID_ARGUMENT for
  // values that CopyValues() and VisitStrings() refuse. REQUIRES a tensor of dtype() with enough
  // room.
  absl::Status Decode(tensorflow::Tensor* out, int64_t at) const;

  double ExtraBytes(int64_t copies) const override;

  // Decodes into a tensor. A row that must be repeated is decoded once, then copied. Reuses the
  // buffer of `*out` if it already has the dtype and shape and is not shared.
  absl::Status BuildTensor(const tensorflow::TensorShape& target,
                           tensorflow::Tensor* out) const override;

 private:
  // Copies of frequently used fields: a request's columns are scattered in memory, which costs
  // cache misses.
  const Column* column_;
  absl::Span<const int64_t> dims_;
  tensorflow::DataType dtype_;
  int64_t count_ = 0;  // elements
  int64_t wire_bytes_ = 0;
};

// A column that already is a tensor: rows of several requests, or of a slice of one.
class TensorView {
 protected:
  TensorView(std::string_view name, const tensorflow::Tensor& tensor);
  Column view_;
};

// Presents the tensor's memory as a received column, so that keys can be made from it. Runs are fed
// the tensor itself.
class DecodedColumn final : private TensorView, public WireColumn {
 public:
  // REQUIRES rank >= 1. `name` must outlive the column.
  DecodedColumn(std::string_view name, tensorflow::Tensor tensor);
  DecodedColumn(const DecodedColumn&) = delete;
  DecodedColumn& operator=(const DecodedColumn&) = delete;

  const tensorflow::Tensor& tensor() const { return tensor_; }

  absl::Status BuildTensor(const tensorflow::TensorShape& target,
                           tensorflow::Tensor* out) const override;

 private:
  const tensorflow::Tensor tensor_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_WIRE_COLUMN_H_
