// Rows of tensors, one by one: whatever dtype a request can carry.
#ifndef COLCAST_SERVER_ENGINE_ROWS_H_
#define COLCAST_SERVER_ENGINE_ROWS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// FAILED_PRECONDITION, with its name and shape, for an output that has other than `rows` rows, or
// rows that cannot be copied. To be asked of whatever a graph gave before its rows are touched.
absl::Status CheckRows(absl::Span<const std::string_view> names,
                       absl::Span<const tensorflow::Tensor> tensors, int64_t rows);

// Whether rows of one can be copied to the other. REQUIRES rank >= 1 of both.
bool HaveRowsOfOneShape(const tensorflow::Tensor& a, const tensorflow::Tensor& b);

// The elements of one row. REQUIRES rank >= 1.
int64_t RowElements(const tensorflow::Tensor& tensor);

// A tensor like `like` but with `rows` rows, uninitialized. RESOURCE_EXHAUSTED without memory.
absl::Status MakeRows(const tensorflow::Tensor& like, int64_t rows, tensorflow::Tensor* out);

// Elements [to, to + count) of `out` become those of `tensor` from `from` on. REQUIRES one dtype.
void CopyElements(const tensorflow::Tensor& tensor, int64_t from, int64_t count, int64_t to,
                  tensorflow::Tensor* out);

// Row `to` of `out` becomes row `from` of `tensor`; both have the same dtype and inner dimensions.
void CopyRow(const tensorflow::Tensor& tensor, int64_t from, int64_t to, tensorflow::Tensor* out);

// The memory that the given rows take, each as often as it is given. A double, because it does not
// overflow.
double BytesOfRows(const tensorflow::Tensor& tensor, absl::Span<const int64_t> rows);

// Sets `*out` to the given rows of `tensor`, in that order.
absl::Status GatherRows(const tensorflow::Tensor& tensor, absl::Span<const int64_t> rows,
                        tensorflow::Tensor* out);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_ROWS_H_
