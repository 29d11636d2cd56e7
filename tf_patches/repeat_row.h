// Builds tensors by repeating one row to a target shape.
//
// This part of colcast belongs in TensorFlow: a ranking request sends a user feature as one row,
// but the model needs it on every row. Rows are the entries of the first dimension. Works for every
// dtype that a TensorProto can carry, including strings.
#ifndef COLCAST_TF_PATCHES_REPEAT_ROW_H_
#define COLCAST_TF_PATCHES_REPEAT_ROW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace colcast {

// Sets `*out` to a tensor of shape `target`: `row` if it has that shape, or its only row, repeated.
//
//   row [1, 3], target [4, 3]: four copies of the row
//   row [4, 3], target [4, 3]: `*out` shares the buffer of `row`, nothing is copied
//   row [1, 3], target [0, 3]: an empty tensor
//
// Returns INVALID_ARGUMENT with both shapes for anything else: another number of rows, other inner
// dimensions, a scalar on one side, a target whose size in bytes exceeds an int64.
// Returns RESOURCE_EXHAUSTED if there is no memory for the target. `*out` is untouched on error.
absl::Status RepeatRow(const tensorflow::Tensor& row, const tensorflow::TensorShape& target,
                       tensorflow::Tensor* out);

// Like RepeatRow(), for a row that is still a proto, in a typed field or in tensor_content. As
// everywhere in TensorFlow, a typed field with too few values repeats its last value.
//
// Also returns INVALID_ARGUMENT for a proto that is not a tensor: a negative or overflowing
// dimension, an unknown rank, a dtype that does not exist, content that does not fit its shape.
absl::Status TensorFromProtoRepeated(const tensorflow::TensorProto& proto,
                                     const tensorflow::TensorShape& target,
                                     tensorflow::Tensor* out);

// Copies row 0 of `tensor`, which the caller has filled, over rows 1 to N-1 in place. Does nothing
// for a scalar, 0 rows or 1 row. REQUIRES that the buffer of `tensor` is not shared.
void RepeatFirstRow(tensorflow::Tensor* tensor);

// The bytes of one element in a tensor's buffer, without a string's text.
int64_t ElementBytes(tensorflow::DataType dtype);

}  // namespace colcast

#endif  // COLCAST_TF_PATCHES_REPEAT_ROW_H_
