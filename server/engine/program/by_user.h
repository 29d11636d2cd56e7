// Runs the candidates of several users, one user at a time.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_BY_USER_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_BY_USER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Calls `run` for each of `users` that has candidates, numbered in `rows`, and puts the rows of its
// outputs in their places in `*result`. FAILED_PRECONDITION if an output has other rows than its
// candidates, or rows of different shapes for different users. REQUIRES at least one candidate, and
// values of `row_to_user` in [0, users).
absl::Status RunByUser(absl::Span<const int64_t> row_to_user, int64_t users,
                       absl::FunctionRef<absl::Status(int64_t user, absl::Span<const int64_t> rows,
                                                      RunResult* of_user)>
                           run,
                       RunResult* result);

// Sets `*some` to the given rows of an input's feed, or to all of it if the feed has no rows.
absl::Status PickRows(const DeclaredInput& input, const tensorflow::Tensor& feed,
                      absl::Span<const int64_t> rows, tensorflow::Tensor* some);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_BY_USER_H_
