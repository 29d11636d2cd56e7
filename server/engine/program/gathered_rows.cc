#include "server/engine/program/gathered_rows.h"

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
      absl::StrCat("with the rows that each of ", candidates,
                   " candidates reads beside it, the columns would take ", bytes, " bytes", than,
                   "; max_expanded_bytes is ", static_cast<int64_t>(max_bytes)));
}

}  // namespace colcast::engine
