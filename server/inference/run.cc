#include "server/inference/run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "server/base/status.h"
#include "server/scheduling/cost.h"

namespace colcast::inference {
namespace {

using scheduling::Clock;
using scheduling::RequestClass;
using scheduling::RunBudget;
using scheduling::WorkerPool;

// Whether the request may be split. If batches are padded to allowed sizes, a request is split only
// if it exceeds the largest slice.
bool MayBeSplit(const AdmittedRequest& one) {
  const engine::BatchRules& rules = one.member->servable().batch_rules();
  return one.profile().can_be_split && !one.whole &&
         (rules.allowed_batch_sizes.empty() ||
          one.profile().rows > one.request_class->limits().max_slice_rows);
}

Status RunOne(const PredictMember& member, std::unique_ptr<engine::Outputs>* outputs) {
  return member.servable().model().Run(*member.planned.plan, outputs);
}

void RunWhole(AdmittedRequest one) {
  PredictMember* const member = one.member;
  const Clock::time_point start = Clock::now();
  MeasuredRun run(one.request_class);
  std::unique_ptr<engine::Outputs> outputs;
  const Status status = WithinMemory([&] {
    ObservedRun observed(member->servable().model());
    observed.Add(member->observer());
    return RunOne(*member, &outputs);
  });
  metrics::CallRecord& record = *member->record();
  record.run_start = start;
  record.runtime = Clock::now() - start;
  if (status.ok()) run.Learn(one.profile().size, one.profile().input_bytes);
  record.run_requests = 1;
  record.run_rows = one.profile().rows;
  member->Finish(status, outputs.get());
}

// A request that has been read but must wait again, because it gives way to short requests or lacks
// memory or a worker.
class AdmittedJob final : public scheduling::Job {
 public:
  AdmittedJob(AdmittedRequest one, WorkerPool* workers)
      : admitted_(std::move(one)), workers_(workers) {}

  Clock::time_point deadline() const override { return admitted_.member->job()->deadline(); }
  bool cancelled() const override { return admitted_.member->job()->cancelled(); }
  uint64_t client() const override { return admitted_.member->job()->client(); }
  void Run(Clock::duration waited, std::vector<scheduling::Taken>*) override {
    admitted_.member->record()->queue_wait = waited;
    RunAlone(std::move(admitted_), workers_);
    delete this;
  }
  void Drop(scheduling::DropReason reason) override {
    admitted_.member->Finish(DropStatus(reason), nullptr);
    delete this;
  }

 private:
  AdmittedRequest admitted_;
  WorkerPool* const workers_;
};

}  // namespace

void RunAlone(AdmittedRequest one, WorkerPool* workers) {
  const Clock::duration cost = one.cost;
  const bool is_long = cost > workers->options().longest_slice;
  scheduling::ShortRequests& short_requests = workers->short_requests();
  if (cost.count() > 0 && !is_long) short_requests.Note();
  if (short_requests.GivesWay(cost) && !scheduling::ThisThreadGivesWay()) {
    const Clock::time_point since = Clock::now() - one.member->record()->queue_wait;
    workers->SubmitSlices({new AdmittedJob(std::move(one), workers)}, since, cost);
    return;
  }
  if (MayBeSplit(one) && RunBySlices(&one, workers)) return;
  WorkerPool::Share share;
  const scheduling::RunNeeds needs = NeedsOf(one);
  switch (workers->Reserve(needs, &share)) {
    case RunBudget::Answer::kYes:
      return RunWhole(std::move(one));
    case RunBudget::Answer::kNever:
      return one.member->Finish(Refusal(one, *workers), nullptr);
    case RunBudget::Answer::kLater:
      const Clock::time_point since = Clock::now() - one.member->record()->queue_wait;
      workers->SubmitForLater(new AdmittedJob(std::move(one), workers), needs, since, cost);
  }
}

namespace {

// Removes long requests that should give way to short ones, and runs each by itself, at low
// priority.
void RunLowPriority(std::vector<AdmittedRequest>* admitted, WorkerPool* workers) {
  for (size_t i = 0; i < admitted->size() && admitted->size() > 1;) {
    if (!workers->short_requests().GivesWay((*admitted)[i].cost)) {
      ++i;
      continue;
    }
    AdmittedRequest one = std::move((*admitted)[i]);
    admitted->erase(admitted->begin() + static_cast<std::ptrdiff_t>(i));
    RunAlone(std::move(one), workers);
  }
}

int64_t InputBytesTogether(const std::vector<AdmittedRequest>& admitted) {
  std::vector<RequestOfRows> requests;
  int64_t bytes = 0;
  for (const AdmittedRequest& one : admitted) {
    bytes += one.profile().input_bytes;
    requests.push_back({&one.member->request(), one.profile().rows});
  }
  return bytes + PaddingBytes(requests);
}

void RunTogether(std::vector<AdmittedRequest>* admitted, WorkerPool* workers) {
  WorkerPool::Share share;
  const int64_t input_bytes = InputBytesTogether(*admitted);
  const int64_t bytes = admitted->front().request_class->memory().Of(input_bytes);
  if (workers->Reserve({bytes, {}}, &share) != RunBudget::Answer::kYes) {
    for (AdmittedRequest& one : *admitted) RunAlone(std::move(one), workers);
    return;
  }
  const Servable& servable = admitted->front().member->servable();
  std::vector<engine::BatchMember> members(admitted->size());
  RequestClass* const of = admitted->front().request_class;
  Clock::duration alone{};
  int64_t rows = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].plan = &(*admitted)[i].plan();
    rows += (*admitted)[i].profile().rows;
    const Clock::duration cost = (*admitted)[i].cost;
    if (cost <= workers->options().longest_slice) workers->short_requests().Note();
    alone += cost;
  }
  const Clock::time_point start = Clock::now();
  MeasuredRun run(of);
  const Status together = WithinMemory([&] {
    ObservedRun observed(servable.model());
    for (const AdmittedRequest& one : *admitted) observed.Add(one.member->observer());
    servable.model().Run(&members);
    return OkStatus();
  });
  if (!together.ok()) {
    // There may be enough memory to run each request by itself.
    for (size_t i = 0; i < members.size(); ++i) {
      engine::BatchMember& member = members[i];
      member.status = WithinMemory([&] { return RunOne(*(*admitted)[i].member, &member.outputs); });
    }
  }
  const Clock::duration runtime = Clock::now() - start;
  run.LearnMemory(input_bytes);
  const bool says_something =
      run.counts() && together.ok() &&
      std::any_of(members.begin(), members.end(), [](const auto& it) { return it.status.ok(); });
  if (says_something) of->joined().Observe(rows, alone, runtime);
  metrics::CallRecord& of_leader = *admitted->front().member->record();
  of_leader.run_requests = static_cast<int64_t>(members.size());
  of_leader.run_rows = rows;
  for (size_t i = 0; i < members.size(); ++i) {
    AdmittedRequest& one = (*admitted)[i];
    metrics::CallRecord& record = *one.member->record();
    record.run_start = start;
    record.runtime = runtime;
    record.requests_in_run = static_cast<int>(members.size());
    record.joined = true;
    // Finishing the last request may destroy the servable.
    one.member->Finish(members[i].status, members[i].outputs.get());
  }
}

}  // namespace

void RunPredict(PredictMember* first, Clock::duration waited,
                std::vector<scheduling::Taken> companions, WorkerPool* workers) {
  std::vector<AdmittedRequest> admitted;
  admitted.reserve(1 + companions.size());
  const auto admit = [&](PredictMember* member, Clock::duration has_waited) {
    if (!Admit(member, has_waited, &admitted.emplace_back())) admitted.pop_back();
  };
  admit(first, waited);
  // A long request takes no companions, because it is split or gives way.
  const bool may_lead =
      !admitted.empty() && admitted.front().cost <= workers->options().longest_slice;
  if (companions.empty() && may_lead) {
    workers->TakeCompanions(JobProfileOf(admitted.front()), &companions);
  }
  for (const scheduling::Taken& taken : companions) {
    admit(dynamic_cast<PredictMember*>(taken.job), taken.waited);
  }
  RunLowPriority(&admitted, workers);
  if (admitted.size() == 1) {
    RunAlone(std::move(admitted.front()), workers);
  } else if (admitted.size() > 1) {
    RunTogether(&admitted, workers);
  }
}

}  // namespace colcast::inference
