// A column on the wire as the expansion rule sees it: one copy, from gRPC's slices to the tensor.
#ifndef COLCAST_SERVER_ENGINE_WIRE_COLUMN_H_
#define COLCAST_SERVER_ENGINE_WIRE_COLUMN_H_

#include "server/wire/predict_request.h"
#include "serving_patches/column_source.h"

namespace colcast::engine {

class WireColumn : public ColumnSource {
 public:
  // `column` must outlive this object.
  explicit WireColumn(const Column& column)
      : column_(&column),
        dims_(column.dims),
        dtype_(static_cast<tensorflow::DataType>(column.dtype)) {}

  // Whether the values fit the shape, from sizes alone: to be asked once for every column of a
  // request before the first tensor is allocated, so that a column that lies about its rows costs
  // nothing. All that follows REQUIRES that it was OK.
  absl::Status Check();

  tensorflow::DataType dtype() const override { return dtype_; }
  absl::Span<const int64_t> dims() const override { return dims_; }

  const Column& column() const { return *column_; }
  int64_t count() const { return count_; }  // elements

  // What the values take in the message, roughly: their field headers may be in it.
  int64_t WireBytes() const { return wire_bytes_; }

  // Writes all values, as they were sent, to the elements of `out` from `at` on. INVALID_ARGUMENT
  // for what CopyValues() and VisitStrings() refuse. REQUIRES a tensor of dtype() with room.
  absl::Status Decode(tensorflow::Tensor* out, int64_t at) const;

  double ExtraBytes(int64_t copies) const override;

  // Decodes into the tensor's buffer; a row to be repeated is decoded into its first row. The
  // buffer is that of `*out` if it has the dtype and the shape already and nobody shares it.
  absl::Status BuildTensor(const tensorflow::TensorShape& target,
                           tensorflow::Tensor* out) const override;

 private:
  // What is asked more than once lies here: a request's columns are spread over the cache.
  const Column* column_;
  absl::Span<const int64_t> dims_;
  tensorflow::DataType dtype_;
  int64_t count_ = 0;       // elements
  int64_t wire_bytes_ = 0;  // see WireBytes()
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_WIRE_COLUMN_H_
