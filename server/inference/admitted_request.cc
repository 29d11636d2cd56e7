#include "server/inference/admitted_request.h"

#include <algorithm>
#include <chrono>

#include "server/base/status.h"
#include "server/inference/input_bytes.h"
#include "server/inference/measured_run.h"

namespace colcast::inference {
namespace {

using scheduling::Clock;
using scheduling::JobProfile;
using scheduling::RequestClass;

// Adds the columns from item tables, because the plan depends on them, and plans the request.
Status FillAndPlan(PredictMember* member) {
  const Servable& servable = member->servable();
  PlannedPredict& planned = member->planned;
  if (const ItemLookup* const items = servable.items(); items != nullptr) {
    Status status = items->Fill(&member->request(), &member->record()->unknown_keys);
    if (!status.ok()) return status;
  }
  Status status = servable.model().Plan(member->request(), servable.batch_rules(), &planned.plan);
  if (!status.ok()) return status;
  engine::RequestProfile& profile = planned.plan->profile;
  profile.rows = std::clamp<int64_t>(profile.rows, 0, JobProfile::kMaxRows);
  if (profile.size == 0) profile.size = profile.rows;
  profile.size = std::min<int64_t>(
      JobProfile::kMaxRows,
      servable.request_class(profile.signature)->SizeOf(profile.size, profile.input_bytes));
  return status;
}

Status PlanOnce(PredictMember* member) {
  PlannedPredict& planned = member->planned;
  if (!planned.status) planned.status = WithinMemory([member] { return FillAndPlan(member); });
  return *planned.status;
}

// Returns INVALID_ARGUMENT, with TensorFlow Serving's message, if the request has more rows than
// max_batch_size allows.
Status CheckRows(const engine::RequestProfile& profile, const RequestClass& of) {
  const int64_t most = of.limits().max_request_rows;
  if (profile.group == 0 || profile.rows <= most) return OkStatus();
  return InvalidArgument("Task size ", profile.rows, " is larger than maximum input batch size ",
                         most, " (max_batch_size)");
}

// Plans the request and estimates its cost.
Status Estimate(PredictMember* member, AdmittedRequest* estimated) {
  if (Status status = PlanOnce(member); !status.ok()) return status;
  estimated->member = member;
  const engine::RequestProfile& profile = estimated->profile();
  estimated->request_class = member->servable().request_class(profile.signature);
  estimated->cost = estimated->request_class->cost().Of(profile.size);
  return CheckRows(profile, *estimated->request_class);
}

}  // namespace

scheduling::RunNeeds NeedsOf(const AdmittedRequest& admitted) {
  return NeedsOfRun(*admitted.request_class, admitted.cost, admitted.profile().input_bytes);
}

Status Refusal(const AdmittedRequest& admitted, const scheduling::WorkerPool& workers) {
  const engine::RequestProfile& profile = admitted.profile();
  Status status = TooMuchMemory(profile.rows, profile.input_bytes, NeedsOf(admitted).bytes,
                                workers.options().memory.max_bytes);
  status.message += "; the largest is " + LargestInput(admitted.member->request(), profile.rows);
  return status;
}

Status CheckDeadline(const AdmittedRequest& admitted, int num_workers) {
  constexpr int64_t kMuchInput = 1 << 20;
  constexpr int kTimes = 2;  // estimates are rough
  const engine::RequestProfile& profile = admitted.profile();
  const Clock::time_point deadline = admitted.member->job()->deadline();
  if (profile.input_bytes < kMuchInput || deadline == Clock::time_point::max()) return OkStatus();
  const Clock::duration left = deadline - Clock::now();
  const int at_once = profile.can_be_split ? num_workers : 1;
  if (admitted.cost / (kTimes * at_once) <= left) return OkStatus();
  const auto milliseconds = [](Clock::duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  };
  return Error(StatusCode::kDeadlineExceeded, "the request's ", profile.rows, " rows, ",
               profile.input_bytes >> 20, " MiB of inputs as tensors, are estimated to take ",
               milliseconds(admitted.cost), " ms, but its deadline is in ", milliseconds(left),
               " ms; the largest is ", LargestInput(admitted.member->request(), profile.rows));
}

bool Admit(PredictMember* member, Clock::duration waited, AdmittedRequest* admitted) {
  member->record()->queue_wait = waited;
  const Status status = WithinMemory([&] {
    Status read = member->Read();
    if (read.ok()) read = Estimate(member, admitted);
    return read;
  });
  if (!status.ok()) member->Finish(status, nullptr);
  return status.ok();
}

JobProfile JobProfileOf(const AdmittedRequest& admitted) {
  const engine::RequestProfile& profile = admitted.profile();
  return {admitted.request_class, profile.group, profile.group == 0 ? 0 : profile.rows,
          admitted.cost};
}

void DescribePredict(PredictMember* member, JobProfile* profile) {
  AdmittedRequest estimated;
  // Leaves the profile empty on an error, because a request that will be refused must not use up
  // its class's room in the queue.
  if (Estimate(member, &estimated).ok()) *profile = JobProfileOf(estimated);
}

}  // namespace colcast::inference
