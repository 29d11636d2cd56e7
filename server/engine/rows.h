// Indices of rows, functions that copy and gather rows of tensors, and runs for several users.
#ifndef COLCAST_SERVER_ENGINE_ROWS_H_
#define COLCAST_SERVER_ENGINE_ROWS_H_

#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/wire/predict_request.h"
#include "serving_patches/expansion_rule.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

struct RunResult;

constexpr std::string_view kRowToUser = "row_to_user";

inline std::string RowTo(std::string_view domain) { return absl::StrCat(kRowTo, domain); }

// The index of candidates that read rows 0, 1, 2, ...
inline tensorflow::Tensor EachRow(int64_t rows) {
  tensorflow::Tensor index(tensorflow::DT_INT64, tensorflow::TensorShape({rows}));
  auto* const begin = static_cast<int64_t*>(index.data());
  std::iota(begin, begin + rows, 0);
  return index;
}

inline absl::Span<const int64_t> RowsIn(const tensorflow::Tensor& index) {
  return {static_cast<const int64_t*>(index.data()), static_cast<size_t>(index.NumElements())};
}

// Returns FAILED_PRECONDITION, with name and shape, if an output does not have `rows` rows, or has
// rows that cannot be copied. Call on a graph's outputs before using their rows.
absl::Status CheckRows(absl::Span<const std::string_view> names,
                       absl::Span<const tensorflow::Tensor> tensors, int64_t rows);

// Whether rows of `a` can be copied to `b`. REQUIRES rank >= 1 of both.
bool HaveRowsOfOneShape(const tensorflow::Tensor& a, const tensorflow::Tensor& b);

// The number of elements in one row. REQUIRES rank >= 1.
int64_t RowElements(const tensorflow::Tensor& tensor);

// An uninitialized tensor. Returns RESOURCE_EXHAUSTED if memory runs out.
absl::Status MakeTensor(tensorflow::DataType dtype, const tensorflow::TensorShape& shape,
                        tensorflow::Tensor* out);

// An uninitialized tensor like `like` but with `rows` rows. Returns RESOURCE_EXHAUSTED if memory
// runs out.
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

// Bounds the memory that one run uses for gathered rows. A row is copied once per candidate that
// reads it.
class GatheredRows {
 public:
  explicit GatheredRows(int64_t max_bytes) : max_bytes_(static_cast<double>(max_bytes)) {}

  // Replaces `*feed` with its given rows, in that order. Returns RESOURCE_EXHAUSTED, before
  // allocating, if everything gathered so far would exceed `max_bytes`.
  absl::Status Gather(absl::Span<const int64_t> rows, tensorflow::Tensor* feed);

 private:
  const double max_bytes_;
  double bytes_ = 0;
};

// Calls `run` once for each of `users` that has candidates; `rows` are the positions of these
// candidates. Copies the output's rows to the same positions in `*result`. Returns
// FAILED_PRECONDITION if an output does not have one row per candidate, or has rows of different
// shapes for different users. REQUIRES at least one candidate, and values of `row_to_user` in [0,
// users).
absl::Status RunByUser(absl::Span<const int64_t> row_to_user, int64_t users,
                       absl::FunctionRef<absl::Status(int64_t user, absl::Span<const int64_t> rows,
                                                      RunResult* of_user)>
                           run,
                       RunResult* result);

// Sets `*some` to the given rows of an input's feed, or to the whole feed if the input has no rows.
absl::Status PickRows(const DeclaredInput& input, const tensorflow::Tensor& feed,
                      absl::Span<const int64_t> rows, tensorflow::Tensor* some);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_ROWS_H_
