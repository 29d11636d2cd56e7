// A column that already is a tensor: rows of several requests, or of a slice of one.
#ifndef COLCAST_SERVER_ENGINE_DECODED_COLUMN_H_
#define COLCAST_SERVER_ENGINE_DECODED_COLUMN_H_

#include <string_view>

#include "absl/status/status.h"
#include "server/engine/wire_column.h"
#include "server/wire/predict_request.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Presents the tensor's memory as a column received on the wire.
class TensorView {
 protected:
  TensorView(std::string_view name, const tensorflow::Tensor& tensor);
  Column view_;
};

// The tensor is fed as it is; the wire view serves to make keys.
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

#endif  // COLCAST_SERVER_ENGINE_DECODED_COLUMN_H_
