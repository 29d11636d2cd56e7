// Plans requests for a loaded model and runs them: alone, together and by slices.
#include <map>
#include <utility>
#include <vector>

#include "server/engine/batch/joined_requests.h"
#include "server/engine/batch/sliced_request.h"
#include "server/engine/model.h"
#include "server/engine/program/programs.h"
#include "server/engine/signature.h"
#include "server/engine/status.h"
#include "server/states/state_cache.h"
#include "server/tables/overlay.h"

namespace colcast::engine {
namespace {

const RequestPlan& AsPlan(const PlannedRequest& plan) {
  return static_cast<const RequestPlan&>(plan);
}

// Whether even a single request goes through the joined run, because it may need padding to an
// allowed batch size.
bool JoinsAlone(const RequestPlan& plan) {
  return plan.profile.group != 0 && !plan.rules->allowed_batch_sizes.empty();
}

// Returns null unless the signature takes tf.Examples that are read as columns.
RunExamples ExamplesOf(const RequestPlan& plan) {
  if (plan.examples == nullptr) return nullptr;
  return [signature = plan.examples](const DecodedRequest& examples, RunResult* result) {
    return Transcoding::Answer(*signature, examples, result);
  };
}

Status RunPlan(const RequestPlan& plan, std::unique_ptr<Outputs>* outputs) {
  RunResult result;
  if (plan.examples == nullptr || !Transcoding::Answer(*plan.examples, *plan.request, &result)) {
    absl::Status status = plan.programs->Run(plan.batch, &result);
    if (!status.ok()) return FromAbsl(status);
    result.expansion = plan.expansion;
  }
  *outputs = std::make_unique<TensorOutputs>(std::move(result));
  return OkStatus();
}

void RunMember(BatchMember* member) {
  member->status = RunPlan(AsPlan(*member->plan), &member->outputs);
}

}  // namespace

Status TensorFlowModel::Plan(const DecodedRequest& request, int signature, const BatchRules& rules,
                             PlanPtr* plan) const {
  const ServedSignature* const served = signature < 0 ? nullptr : by_number_[signature];
  if (served == nullptr) return FromAbsl(NotServed(request.model_spec.signature_name));
  const Programs& programs = *served->programs;
  std::unique_ptr<RequestPlan, ReleasePlan> made = RequestPlan::New();
  if (absl::Status status = programs.Plan(request, made.get()); !status.ok()) {
    return FromAbsl(status);
  }
  made->rules = &rules;
  made->examples = served->examples;
  made->profile = programs.ProfileOf(*made, rules);
  *plan = std::move(made);
  return OkStatus();
}

tables::GenerationPtr TensorFlowModel::TablesNow() const {
  if (table_deltas_ == nullptr || !table_deltas_->has_changed()) return nullptr;
  return table_deltas_->now();
}

std::shared_ptr<const void> TensorFlowModel::PinTables() const {
  return std::make_shared<const tables::ReadsGeneration>(TablesNow(), /*pinned=*/true);
}

Status TensorFlowModel::Run(const PlannedRequest& plan, std::unique_ptr<Outputs>* outputs) const {
  const tables::ReadsGeneration reads(TablesNow());
  if (!JoinsAlone(AsPlan(plan))) return RunPlan(AsPlan(plan), outputs);
  BatchMember alone;
  alone.plan = &plan;
  RunGroup({&alone});
  *outputs = std::move(alone.outputs);
  return std::move(alone.status);
}

void TensorFlowModel::Run(std::vector<BatchMember>* members) const {
  const tables::ReadsGeneration reads(TablesNow());
  std::map<uint64_t, std::vector<BatchMember*>> groups;
  for (BatchMember& member : *members) groups[member.plan->profile.group].push_back(&member);
  for (const auto& [number, group] : groups) {
    if (number != 0 && (group.size() > 1 || JoinsAlone(AsPlan(*group[0]->plan)))) {
      RunGroup(group);
    } else {
      for (BatchMember* const member : group) RunMember(member);
    }
  }
}

void TensorFlowModel::RunGroup(const std::vector<BatchMember*>& group) {
  const RequestPlan& first = AsPlan(*group[0]->plan);
  RunJoined(*first.programs, *first.rules, {RunMember, ExamplesOf(first)}, group);
}

std::unique_ptr<Slices> TensorFlowModel::Split(const PlannedRequest& planned) const {
  const RequestPlan& plan = AsPlan(planned);
  if (!plan.profile.can_be_split) return nullptr;
  const tables::ReadsGeneration reads(TablesNow());
  return SlicedRequest::Create(plan, ExamplesOf(plan));
}

}  // namespace colcast::engine
