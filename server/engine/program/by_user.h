// Several users' candidates, each user's run by themselves.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_BY_USER_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_BY_USER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

// Runs `run` for each of `users` who has candidates, in `rows`, and puts the rows of what it gives
// in their places in `*result`. FAILED_PRECONDITION where an output has other rows than its
// candidates, or rows of another shape for every user. REQUIRES a candidate, and each of
// `row_to_user` in [0, users).
absl::Status RunByUser(absl::Span<const int64_t> row_to_user, int64_t users,
                       absl::FunctionRef<absl::Status(int64_t user, absl::Span<const int64_t> rows,
                                                      RunResult* of_user)>
                           run,
                       RunResult* result);

// Sets `*some` to the given rows of what is fed to an input, or to all of it if it has no rows.
absl::Status PickRows(const DeclaredInput& input, const tensorflow::Tensor& feed,
                      absl::Span<const int64_t> rows, tensorflow::Tensor* some);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_BY_USER_H_
