#include "tf_patches/repeat_row.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/platform/mem.h"

namespace colcast {

using tensorflow::DataType;
using tensorflow::DataTypeString;
using tensorflow::Tensor;
using tensorflow::TensorProto;
using tensorflow::TensorShape;
using tensorflow::TensorShapeProto;

int64_t ElementBytes(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_STRING:
      return sizeof(tensorflow::tstring);
    case tensorflow::DT_RESOURCE:
      return sizeof(tensorflow::ResourceHandle);
    case tensorflow::DT_VARIANT:
      return sizeof(tensorflow::Variant);
    default:
      return tensorflow::DataTypeSize(dtype);
  }
}

namespace {

template <typename T>
void CopyObjects(const char* from, int64_t elements, char* to) {
  std::copy_n(reinterpret_cast<const T*>(from), elements, reinterpret_cast<T*>(to));
}

// Copies elements to a buffer whose elements are already constructed.
void CopyElements(DataType dtype, const char* from, int64_t elements, char* to) {
  switch (dtype) {
    case tensorflow::DT_STRING:
      return CopyObjects<tensorflow::tstring>(from, elements, to);
    case tensorflow::DT_RESOURCE:
      return CopyObjects<tensorflow::ResourceHandle>(from, elements, to);
    case tensorflow::DT_VARIANT:
      return CopyObjects<tensorflow::Variant>(from, elements, to);
    default:
      std::memcpy(to, from, elements * ElementBytes(dtype));
  }
}

char* Buffer(const Tensor& tensor) { return static_cast<char*>(tensor.data()); }

absl::Status CheckRepeats(const TensorShape& row, const TensorShape& target) {
  if (row == target) return absl::OkStatus();
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of shape ", row.DebugString(),
                                                   " cannot be repeated to shape ",
                                                   target.DebugString(), ": ", why));
  };
  if (row.dims() == 0 || target.dims() == 0) return refuse("a scalar has no rows");
  if (row.dims() != target.dims()) return refuse("the ranks differ");
  for (int d = 1; d < row.dims(); ++d) {
    if (row.dim_size(d) != target.dim_size(d)) return refuse("the inner dimensions differ");
  }
  if (row.dim_size(0) != 1) {
    return refuse(absl::StrCat("it has ", row.dim_size(0), " rows, only one row is repeated"));
  }
  return absl::OkStatus();
}

// Checks the size before allocating, because TensorFlow's allocator waits ten seconds before it
// fails for lack of memory.
absl::Status CheckFitsMemory(DataType dtype, const TensorShape& row, const TensorShape& target) {
  static const int64_t memory_bytes = tensorflow::port::GetMemoryInfo().total;
  const int64_t element_bytes = std::max<int64_t>(1, ElementBytes(dtype));
  const auto text = [&] {
    return absl::StrCat(DataTypeString(dtype), " of shape ", row.DebugString(),
                        " repeated to shape ", target.DebugString());
  };
  if (target.num_elements() > std::numeric_limits<int64_t>::max() / element_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(text(), " has more bytes than can be addressed"));
  }
  if (target.num_elements() * element_bytes > memory_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(text(), " has more bytes than this machine's memory"));
  }
  return absl::OkStatus();
}

absl::Status Allocate(DataType dtype, const TensorShape& row, const TensorShape& target,
                      Tensor* out) {
  if (absl::Status status = CheckFitsMemory(dtype, row, target); !status.ok()) return status;
  *out = Tensor(dtype, target);
  if (!out->IsInitialized()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", DataTypeString(dtype), " of shape ", target.DebugString()));
  }
  return absl::OkStatus();
}

std::string ShapeText(const TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "<unknown rank>";
  std::string text = "[";
  for (const auto& dim : shape.dim()) {
    absl::StrAppend(&text, text.size() > 1 ? "," : "", dim.size());
  }
  return text + "]";
}

absl::Status RowShape(const TensorProto& proto, const TensorShape& target, TensorShape* row) {
  if (proto.tensor_shape().unknown_rank() ||
      !TensorShape::BuildTensorShape(proto.tensor_shape(), row).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(ShapeText(proto.tensor_shape()),
                                                   " is not a shape of a tensor, expected ",
                                                   target.DebugString(), " or one row of it"));
  }
  return CheckRepeats(*row, target);
}

}  // namespace

absl::Status RepeatRow(const Tensor& row, const TensorShape& target, Tensor* out) {
  if (absl::Status status = CheckRepeats(row.shape(), target); !status.ok()) return status;
  if (row.shape() == target) {
    *out = row;
    return absl::OkStatus();
  }
  Tensor tensor;
  if (absl::Status status = Allocate(row.dtype(), row.shape(), target, &tensor); !status.ok()) {
    return status;
  }
  if (target.num_elements() > 0) {
    CopyElements(row.dtype(), Buffer(row), row.NumElements(), Buffer(tensor));
    RepeatFirstRow(&tensor);
  }
  *out = std::move(tensor);
  return absl::OkStatus();
}

absl::Status TensorFromProtoRepeated(const TensorProto& proto, const TensorShape& target,
                                     Tensor* out) {
  TensorShape shape;
  if (absl::Status status = RowShape(proto, target, &shape); !status.ok()) return status;
  absl::Status fits = CheckFitsMemory(proto.dtype(), shape, target);
  if (!fits.ok()) return fits;
  Tensor row;
  if (!row.FromProto(proto)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a tensor of ", DataTypeString(proto.dtype()), " and shape ",
                     shape.DebugString(), ", expected ", target.DebugString(),
                     ": its dtype does not exist or its content does not decode"));
  }
  return RepeatRow(row, target, out);
}

void RepeatFirstRow(Tensor* tensor) {
  if (tensor->dims() == 0 || tensor->NumElements() == 0) return;
  const int64_t rows = tensor->dim_size(0);
  const int64_t row_elements = tensor->NumElements() / rows;
  const int64_t row_bytes = row_elements * ElementBytes(tensor->dtype());
  char* const buffer = Buffer(*tensor);
  for (int64_t filled = 1; filled < rows;) {
    const int64_t copied = std::min(filled, rows - filled);
    CopyElements(tensor->dtype(), buffer, copied * row_elements, buffer + filled * row_bytes);
    filled += copied;
  }
}

}  // namespace colcast
