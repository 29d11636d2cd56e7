// Decides how many rows of a large request a slice has.
#ifndef COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_
#define COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_

#include <chrono>
#include <cstdint>

#include "server/scheduling/cost_estimate.h"

namespace colcast::scheduling {

// What limits the slices of a request or of its remaining rows.
struct SliceNeeds {
  int idle_workers = 0;  // number of idle workers that could run slices too
  // How long a short request may have to wait for a slice; Duration::max() without short requests.
  CostEstimate::Duration longest = CostEstimate::Duration::max();
  int64_t max_rows = INT64_MAX;  // limit for one slice
};

// Returns the number of rows per slice; the last slice may have fewer. Returns `rows` if splitting
// does not pay. Each slice repeats the fixed cost of a run, so its rows must take at least as long
// as that, and long enough to justify waking a worker. While the cost is unknown, slices have about
// kRowsToLearnFrom rows if that helps an idle worker or short requests; the caller asks again after
// the first slices have run.
inline constexpr int64_t kRowsToLearnFrom = 1000;
int64_t RowsPerSlice(int64_t rows, const CostEstimate::Line& cost, const SliceNeeds& needs);

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_
