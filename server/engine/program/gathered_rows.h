// Limits the memory of one run for gathered rows, of which several candidates may read the same
// one.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_ROWS_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {

class GatheredRows {
 public:
  explicit GatheredRows(int64_t max_bytes) : max_bytes_(static_cast<double>(max_bytes)) {}

  // Replaces `*feed` by the given rows of it. RESOURCE_EXHAUSTED, before allocating, if everything
  // gathered so far would exceed `max_bytes`.
  absl::Status Gather(absl::Span<const int64_t> rows, tensorflow::Tensor* feed);

 private:
  const double max_bytes_;
  double bytes_ = 0;
};

// RESOURCE_EXHAUSTED: the columns, with a row for each of `candidates`, would take `bytes`.
absl::Status TooMuchGathered(int64_t candidates, double bytes, const char* than, double max_bytes);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_ROWS_H_
