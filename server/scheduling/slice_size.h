// How many rows of a large request one worker takes at a time.
#ifndef COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_
#define COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_

#include <chrono>
#include <cstdint>

#include "server/scheduling/cost_estimate.h"

namespace colcast::scheduling {

// What a request, or what is left of it, is cut for.
struct SliceNeeds {
  int idle_workers = 0;  // that run it, too
  // How long short requests may wait for a slice; the greatest duration if there are none.
  CostEstimate::Duration longest = CostEstimate::Duration::max();
  int64_t max_rows = INT64_MAX;  // of a slice, whatever the others say
};

// The rows of each slice but the last, which may have fewer; `rows` if it is better not cut. Slices
// are about equal. Each repeats what a run costs whatever its rows, so none is cut smaller than
// what takes as long as that, nor than what is worth waking a worker for. While nothing is known of
// the cost, and a worker or short requests gain by it, a slice has kRowsToLearnFrom: it is to be
// asked again once that has run.
inline constexpr int64_t kRowsToLearnFrom = 1000;
int64_t RowsPerSlice(int64_t rows, const CostEstimate::Line& cost, const SliceNeeds& needs);

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_SLICE_SIZE_H_
