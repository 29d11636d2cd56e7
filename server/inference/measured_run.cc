#include "server/inference/measured_run.h"

#include <time.h>

#include <chrono>

#include "server/scheduling/worker_pool.h"

namespace colcast::inference {

namespace {

using scheduling::Clock;

// A run with at least this cost is long: it needs a worker's place (RunNeeds::worker). At this cost
// the queue's handicap reaches its limit.
constexpr Clock::duration kLong =
    scheduling::RequestQueue::kLongestHandicap / scheduling::RequestQueue::kAgeing;

// A run of unknown cost with an input of at least this size is assumed to be long.
constexpr int64_t kMuchInput = 1 << 20;
constexpr std::chrono::seconds kUnknown(6);

}  // namespace

Clock::duration BusyTime::Now() {
  if (!scheduling::ThisThreadIsNice()) return Clock::now().time_since_epoch();
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
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
