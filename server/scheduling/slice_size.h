// Decides how many rows of a large request one worker takes at a time.
#ifndef COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_
#define COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_

#include <chrono>
#include <cstdint>

#include "server/scheduling/cost_estimate.h"

namespace colcast::scheduling {

// The limits for slices of a request, or of its remaining rows.
struct SliceNeeds {
  int idle_workers = 0;  // idle workers that could also run slices
  // How long a short request may wait for a slice; the greatest duration if no short requests
  // arrive.
  CostEstimate::Duration longest = CostEstimate::Duration::max();
  int64_t max_rows = INT64_MAX;  // upper bound of a slice
};

// The number of rows in each slice; the last may have fewer. Returns `rows` if splitting does not
// pay. Slices are about equal. Each repeats the fixed cost of a run, so its rows must take at least
// as long as that, and long enough to justify waking a worker. While the cost is unknown, slices
// have kRowsToLearnFrom rows if that helps an idle worker or short requests; the caller asks again
// after the slice has run.
inline constexpr int64_t kRowsToLearnFrom = 1000;
int64_t RowsPerSlice(int64_t rows, const CostEstimate::Line& cost, const SliceNeeds& needs);

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_
