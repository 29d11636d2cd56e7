#include "server/inference/measured_run.h"

#include <chrono>

#include "server/base/thread.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::inference {

namespace {

using scheduling::Clock;

// A run of at least this cost is long and reserves a worker (RunNeeds::worker). At this cost, a
// job's handicap in the queue reaches its limit.
constexpr Clock::duration kLong =
    scheduling::RequestQueue::kLongestHandicap / scheduling::RequestQueue::kAgeing;

// A run of unknown cost is assumed to be long if its input has at least this size.
constexpr int64_t kMuchInput = 1 << 20;
constexpr std::chrono::seconds kUnknown(6);

}  // namespace

Clock::duration BusyTime::Now() {
  if (!scheduling::ThisThreadIsNice()) return Clock::now().time_since_epoch();
  return CpuTimeOfThisThread();
}

scheduling::RunNeeds NeedsOfRun(scheduling::RequestClass& of, Clock::duration cost,
                                int64_t input_bytes) {
  scheduling::RunNeeds needs;
  needs.bytes = of.memory().Of(input_bytes);
  if (cost.count() == 0 && input_bytes >= kMuchInput) cost = kUnknown;
  if (cost >= kLong) needs.worker = cost;
  return needs;
}

Status TooMuchMemory(int64_t rows, int64_t input_bytes, int64_t bytes, int64_t max_bytes) {
  constexpr int64_t kMiB = 1 << 20;
  return ResourceExhausted("the request's ", rows, " rows, ", input_bytes / kMiB,
                           " MiB of inputs as tensors, are estimated to take ", bytes / kMiB,
                           " MiB in one run; --max_run_bytes is ", max_bytes, " (",
                           max_bytes / kMiB, " MiB), and the server may have less left");
}

}  // namespace colcast::inference
