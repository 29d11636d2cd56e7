#include "server/scheduling/slice_size.h"

#include <gtest/gtest.h>

#include <chrono>

namespace colcast::scheduling {
namespace {

using std::chrono::milliseconds;

constexpr CostEstimate::Duration kNoShortRequests = CostEstimate::Duration::max();
constexpr CostEstimate::Line kUnknown{0, 0};
// 0.4 ms and 0.01 ms per row: 1,000 rows take 10.4 ms.
constexpr CostEstimate::Line kWide{0.4e6, 0.01e6};

TEST(SliceSizeTest, CutsForIdleWorkersAndForShortRequests) {
  const struct {
    const char* name;
    int64_t rows;
    CostEstimate::Line cost;
    SliceNeeds needs;
    int64_t rows_per_slice;
  } kCases[] = {
      {"nobody is idle, nobody else waits", 1000, kWide, {0, kNoShortRequests}, 1000},
      {"one more worker", 1000, kWide, {1, kNoShortRequests}, 500},
      {"three more", 1000, kWide, {3, kNoShortRequests}, 250},
      {"not more slices than their fixed part is worth",
       500,
       {4e6, 0.01e6},
       {3, kNoShortRequests},
       250},
      {"too small to cut", 20, kWide, {3, kNoShortRequests}, 20},
      {"short requests wait 2 ms: 0.4 + 160 rows", 1000, kWide, {0, milliseconds(2)}, 143},
      {"both: the smaller slice", 1000, kWide, {1, milliseconds(2)}, 143},
      {"shorter than short requests may wait", 100, kWide, {0, milliseconds(2)}, 100},
      {"a fixed part above the wait: slices of twice that",
       1000,
       {4e6, 0.04e6},
       {0, milliseconds(2)},
       100},
      {"too short to wake another worker for", 100, kWide, {3, kNoShortRequests}, 100},
      {"much too short", 20, {0, 0.01e6}, {3, kNoShortRequests}, 20},
      {"nothing is known yet", 1000, kUnknown, {3, milliseconds(2)}, 1000},
      {"what nothing is known of is cut to be learned from",
       262'144,
       kUnknown,
       {1, kNoShortRequests},
       997},
      {"the same beside short requests", 262'144, kUnknown, {0, milliseconds(2)}, 997},
      {"it is not cut where nobody gains", 262'144, kUnknown, {0, kNoShortRequests}, 262'144},
      {"a limit holds, known or not", 1000, kUnknown, {0, kNoShortRequests, 300}, 250},
      {"a limit above the rows", 200, kWide, {0, kNoShortRequests, 300}, 200},
      {"one row", 1, kWide, {3, milliseconds(2)}, 1},
      {"no rows", 0, kWide, {3, milliseconds(2)}, 0},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(RowsPerSlice(c.rows, c.cost, c.needs), c.rows_per_slice) << c.name;
  }
}

}  // namespace
}  // namespace colcast::scheduling
