#include "server/engine/program/gathered_rows.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/rows.h"

namespace colcast::engine {

absl::Status GatheredRows::Gather(absl::Span<const int64_t> rows, tensorflow::Tensor* feed) {
  bytes_ += BytesOfRows(*feed, rows);
  if (bytes_ > max_bytes_) {
    return TooMuchGathered(static_cast<int64_t>(rows.size()), bytes_, "", max_bytes_);
  }
  return GatherRows(*feed, rows, feed);
}

absl::Status TooMuchGathered(int64_t candidates, double bytes, const char* than, double max_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the columns gathered for ", candidates, " candidates would take ", bytes,
                   " bytes", than, "; max_expanded_bytes is ", static_cast<int64_t>(max_bytes)));
}

namespace {

using tensorflow::Tensor;

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
