#include "server/scheduling/slice_size.h"

#include <algorithm>
#include <cmath>

namespace colcast::scheduling {
namespace {

// The shortest slice worth waking an idle worker for, in nanoseconds. Slicing costs about a quarter
// more CPU, which is too much for the few microseconds that a shorter slice would save.
constexpr double kShortestForIdle = 2e6;

}  // namespace

int64_t RowsPerSlice(int64_t rows, const CostEstimate::Line& cost, const SliceNeeds& needs) {
  const double all_rows = static_cast<double>(rows) * cost.per_row;
  double slices = 1;
  const bool someone_gains = needs.idle_workers > 0 || needs.longest != SliceNeeds().longest;
  if (cost.fixed + cost.per_row == 0) {
    if (someone_gains) slices = static_cast<double>(rows) / kRowsToLearnFrom;
  } else if (all_rows > 0) {
    const double longest = std::chrono::duration<double, std::nano>(needs.longest).count();
    // The time that each slice may spend on rows.
    const double for_rows = std::max(longest - cost.fixed, cost.fixed);
    if (cost.fixed + all_rows > longest) slices = for_rows > 0 ? all_rows / for_rows : 1;
    slices = std::max(slices, std::min(1.0 + needs.idle_workers, all_rows / kShortestForIdle));
    if (cost.fixed > 0) slices = std::min(slices, all_rows / cost.fixed);
  }
  const double at_least =
      std::ceil(static_cast<double>(rows) / static_cast<double>(needs.max_rows));
  slices = std::clamp(std::ceil(slices - 1e-9), std::max(1.0, at_least),
                      std::max(1.0, static_cast<double>(rows)));
  const auto count = static_cast<int64_t>(slices);
  return (rows + count - 1) / count;
}

}  // namespace colcast::scheduling
