#include "server/engine/rows.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/tstring.h"
#include "tf_patches/repeat_row.h"

namespace colcast::engine {

namespace {

using tensorflow::Tensor;
using tensorflow::tstring;

bool CanBeCopied(tensorflow::DataType dtype) {
  return dtype == tensorflow::DT_STRING || tensorflow::DataTypeCanUseMemcpy(dtype);
}

}  // namespace

absl::Status CheckRows(absl::Span<const std::string_view> names, absl::Span<const Tensor> tensors,
                       int64_t rows) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (tensor.dims() > 0 && tensor.dim_size(0) == rows && CanBeCopied(tensor.dtype())) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("output \"", names[i], "\" is ", tensorflow::DataTypeString(tensor.dtype()),
                     " ", tensor.shape().DebugString(), "; expected one row for each of ", rows));
  }
  return absl::OkStatus();
}

bool HaveRowsOfOneShape(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  for (int d = 1; d < a.dims(); ++d) {
    if (a.dim_size(d) != b.dim_size(d)) return false;
  }
  return true;
}

int64_t RowElements(const Tensor& tensor) {
  int64_t elements = 1;
  for (int d = 1; d < tensor.dims(); ++d) elements *= tensor.dim_size(d);
  return elements;
}

absl::Status MakeTensor(tensorflow::DataType dtype, const tensorflow::TensorShape& shape,
                        Tensor* out) {
  Tensor made(tensorflow::cpu_allocator(), dtype, shape);
  if (!made.IsInitialized() && shape.num_elements() > 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a tensor of shape ", shape.DebugString()));
  }
  *out = std::move(made);
  return absl::OkStatus();
}

absl::Status MakeRows(const Tensor& like, int64_t rows, Tensor* out) {
  tensorflow::TensorShape shape = like.shape();
  shape.set_dim(0, rows);
  return MakeTensor(like.dtype(), shape, out);
}

void CopyElements(const Tensor& tensor, int64_t from, int64_t count, int64_t to, Tensor* out) {
  if (tensor.dtype() == tensorflow::DT_STRING) {
    const tstring* const source = static_cast<const tstring*>(tensor.data()) + from;
    std::copy_n(source, count, static_cast<tstring*>(out->data()) + to);
    return;
  }
  const size_t size = tensorflow::DataTypeSize(tensor.dtype());
  if (count * size == 0) return;
  std::memcpy(static_cast<char*>(out->data()) + to * size,
              static_cast<const char*>(tensor.data()) + from * size, count * size);
}

void CopyRow(const Tensor& tensor, int64_t from, int64_t to, Tensor* out) {
  const int64_t elements = RowElements(tensor);
  CopyElements(tensor, from * elements, elements, to * elements, out);
}

double BytesOfRows(const Tensor& tensor, absl::Span<const int64_t> rows) {
  const int64_t width = RowElements(tensor);
  const bool strings = tensor.dtype() == tensorflow::DT_STRING;
  double bytes = static_cast<double>(ElementBytes(tensor.dtype())) * static_cast<double>(width) *
                 static_cast<double>(rows.size());
  if (!strings) return bytes;
  const auto* const elements = static_cast<const tstring*>(tensor.data());
  for (const int64_t row : rows) {
    for (int64_t i = 0; i < width; ++i) {
      bytes += static_cast<double>(elements[row * width + i].size());
    }
  }
  return bytes;
}

absl::Status GatherRows(const Tensor& tensor, absl::Span<const int64_t> rows, Tensor* out) {
  Tensor gathered;
  absl::Status status = MakeRows(tensor, rows.size(), &gathered);
  if (!status.ok()) return status;
  for (size_t i = 0; i < rows.size(); ++i) CopyRow(tensor, rows[i], i, &gathered);
  *out = std::move(gathered);
  return absl::OkStatus();
}

absl::Status GatheredRows::Gather(absl::Span<const int64_t> rows, tensorflow::Tensor* feed) {
  bytes_ += BytesOfRows(*feed, rows);
  if (bytes_ > max_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the columns gathered for ", rows.size(), " candidates would take ", bytes_,
                     " bytes; max_expanded_bytes is ", static_cast<int64_t>(max_bytes_)));
  }
  return GatherRows(*feed, rows, feed);
}

namespace {

// Copies the rows of one user's outputs to their places among `num_rows`.
absl::Status Place(const RunResult& of_user, absl::Span<const int64_t> rows, int64_t num_rows,
                   RunResult* result) {
  absl::Status status = CheckRows(of_user.aliases, of_user.tensors, rows.size());
  if (!status.ok()) return status;
  const bool is_first = result->tensors.empty();
  if (is_first) result->aliases = of_user.aliases;
  for (size_t k = 0; k < of_user.tensors.size(); ++k) {
    const Tensor& tensor = of_user.tensors[k];
    if (is_first) status = MakeRows(tensor, num_rows, &result->tensors.emplace_back());
    if (!status.ok()) return status;
    if (!HaveRowsOfOneShape(tensor, result->tensors[k])) {
      return absl::FailedPreconditionError(
          absl::StrCat("output \"", of_user.aliases[k], "\" has rows of different shapes (",
                       tensor.shape().DebugString(), ") for different users"));
    }
    for (size_t i = 0; i < rows.size(); ++i) CopyRow(tensor, i, rows[i], &result->tensors[k]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunByUser(absl::Span<const int64_t> row_to_user, int64_t users,
                       absl::FunctionRef<absl::Status(int64_t user, absl::Span<const int64_t> rows,
                                                      RunResult* of_user)>
                           run,
                       RunResult* result) {
  std::vector<std::vector<int64_t>> rows_of(users);
  for (size_t row = 0; row < row_to_user.size(); ++row) {
    rows_of[row_to_user[row]].push_back(static_cast<int64_t>(row));
  }
  for (int64_t user = 0; user < users; ++user) {
    if (rows_of[user].empty()) continue;
    RunResult of_user;
    absl::Status status = run(user, rows_of[user], &of_user);
    if (status.ok()) {
      status = Place(of_user, rows_of[user], static_cast<int64_t>(row_to_user.size()), result);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PickRows(const DeclaredInput& input, const Tensor& feed,
                      absl::Span<const int64_t> rows, Tensor* some) {
  if (input.batched() && feed.dims() > 0) return GatherRows(feed, rows, some);
  *some = feed;
  return absl::OkStatus();
}

}  // namespace colcast::engine
