// Measures the queue's cost per request at various lengths.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "server/scheduling/request_queue.h"

namespace colcast::scheduling {
namespace {

using std::chrono::milliseconds;

class WaitingJob final : public Job {
 public:
  Clock::time_point deadline() const override { return due; }
  bool cancelled() const override { return false; }
  void Run(Clock::duration, std::vector<Taken>*) override {}
  void Drop(DropReason) override {}

  Clock::time_point due = Clock::time_point::max();
};

// Adds and dequeues one request while state.range(0) requests wait. If `late`, these are overdue,
// so the newest goes first.
void TakeAndAdd(benchmark::State& state, bool late) {
  const int count = static_cast<int>(state.range(0));
  const Clock::time_point began(std::chrono::hours(1));
  const Clock::time_point now = began + milliseconds(60);
  RequestQueue queue(/*max_requests=*/count + 1);
  std::vector<WaitingJob> jobs(count);
  for (WaitingJob& job : jobs) {
    if (late) job.due = began + milliseconds(100);
    queue.Add(&job, {}, began);
  }
  Taken next;
  std::vector<Taken> companions;
  for (auto _ : state) {
    queue.Take(now, /*takers=*/2, &next, &companions);
    queue.Add(next.job, {}, began);
  }
}
BENCHMARK_CAPTURE(TakeAndAdd, oldest_first, false)->RangeMultiplier(10)->Range(100, 100'000);
BENCHMARK_CAPTURE(TakeAndAdd, newest_first, true)->RangeMultiplier(10)->Range(100, 100'000);

}  // namespace
}  // namespace colcast::scheduling
