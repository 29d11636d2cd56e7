// Operations on single rows of tensors, for every dtype that a request can carry.
#ifndef COLCAST_SERVER_ENGINE_ROWS_H_
#define COLCAST_SERVER_ENGINE_ROWS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// FAILED_PRECONDITION, with name and shape, if an output has other than `rows` rows, or rows that
// cannot be copied. To be called on a graph's outputs before their rows are used.
absl::Status CheckRows(absl::Span<const std::string_view> names,
                       absl::Span<const tensorflow::Tensor> tensors, int64_t rows);

// Whether rows of `a` can be copied to `b`. REQUIRES rank >= 1 of both.
bool HaveRowsOfOneShape(const tensorflow::Tensor& a, const tensorflow::Tensor& b);

// The number of elements in one row. REQUIRES rank >= 1.
int64_t RowElements(const tensorflow::Tensor& tensor);

// A tensor like `like` but with `rows` rows, uninitialized. RESOURCE_EXHAUSTED without memory.
absl::Status MakeRows(const tensorflow::Tensor& like, int64_t rows, tensorflow::Tensor* out);

// Copies elements [from, from + count) of `tensor` to `out`, from element `to` on. REQUIRES the
// same dtype.
void CopyElements(const tensorflow::Tensor& tensor, int64_t from, int64_t count, int64_t to,
                  tensorflow::Tensor* out);

// Copies row `from` of `tensor` to row `to` of `out`. REQUIRES the same dtype and inner dimensions.
void CopyRow(const tensorflow::Tensor& tensor, int64_t from, int64_t to, tensorflow::Tensor* out);

// The bytes of the given rows, counting each as often as it is listed. A double, because it cannot
// overflow.
double BytesOfRows(const tensorflow::Tensor& tensor, absl::Span<const int64_t> rows);

// Sets `*out` to the given rows of `tensor`, in that order.
absl::Status GatherRows(const tensorflow::Tensor& tensor, absl::Span<const int64_t> rows,
                        tensorflow::Tensor* out);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_ROWS_H_
