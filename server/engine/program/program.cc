#include "server/engine/program/program.h"

#include <memory>
#include <utility>
#include <vector>

namespace colcast::engine {

namespace {

// Bounds on each thread's pool of released plans, and on their size. A pool could grow forever,
// because a queued request may be released on another thread than the one that read it.
constexpr size_t kMostSpare = 16;
constexpr size_t kMostKeptColumns = 2048;

std::vector<std::unique_ptr<RequestPlan>>& Spare() {
  thread_local std::vector<std::unique_ptr<RequestPlan>> spare;
  return spare;
}

}  // namespace

std::unique_ptr<RequestPlan, ReleasePlan> RequestPlan::New() {
  std::vector<std::unique_ptr<RequestPlan>>& spare = Spare();
  if (spare.empty()) return std::unique_ptr<RequestPlan, ReleasePlan>(new RequestPlan);
  std::unique_ptr<RequestPlan, ReleasePlan> plan(spare.back().release());
  spare.pop_back();
  return plan;
}

void RequestPlan::Release() {
  std::unique_ptr<RequestPlan> plan(this);
  std::vector<std::unique_ptr<RequestPlan>>& spare = Spare();
  if (spare.size() == kMostSpare || received.inputs.capacity() > kMostKeptColumns) return;
  batch.domains.clear();  // frees the indices
  spare.push_back(std::move(plan));
}

}  // namespace colcast::engine
