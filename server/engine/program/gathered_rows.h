// Gathers rows of feeds, and runs the candidates of several users, one user at a time.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_ROWS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_ROWS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Bounds the memory that one run uses for gathered rows. A row is copied once per candidate that
// reads it.
class GatheredRows {
 public:
  explicit GatheredRows(int64_t max_bytes) : max_bytes_(static_cast<double>(max_bytes)) {}

  // Replaces `*feed` with those of its rows that `rows` lists, in that order. Returns
  // RESOURCE_EXHAUSTED, before allocating, if everything gathered so far would exceed `max_bytes`.
  absl::Status Gather(absl::Span<const int64_t> rows, tensorflow::Tensor* feed);

 private:
  const double max_bytes_;
  double bytes_ = 0;
};

// Returns RESOURCE_EXHAUSTED, saying that the columns, with a row for each of `candidates`, would
// take `bytes`.
absl::Status TooMuchGathered(int64_t candidates, double bytes, const char* than, double max_bytes);

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

// Sets `*some` to the given rows of an input's feed, or to the whole feed if it has no rows.
absl::Status PickRows(const DeclaredInput& input, const tensorflow::Tensor& feed,
                      absl::Span<const int64_t> rows, tensorflow::Tensor* some);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_ROWS_H_
