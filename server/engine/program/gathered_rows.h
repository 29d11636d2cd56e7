// The memory that one run may take for rows that several candidates read.
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

  // Sets `*feed` to these of its rows. RESOURCE_EXHAUSTED, before anything is allocated, where all
  // that was gathered would take more than `max_bytes`.
  absl::Status Gather(absl::Span<const int64_t> rows, tensorflow::Tensor* feed);

 private:
  const double max_bytes_;
  double bytes_ = 0;
};

// RESOURCE_EXHAUSTED: with the rows that `candidates` read, columns would take so many bytes.
absl::Status TooMuchGathered(int64_t candidates, double bytes, const char* than, double max_bytes);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_GATHERED_ROWS_H_
