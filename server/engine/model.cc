#include "server/engine/model.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/batch/joined_requests.h"
#include "server/engine/batch/sliced_request.h"
#include "server/engine/program/programs.h"
#include "server/engine/signature.h"
#include "server/engine/status.h"
#include "server/states/state_cache.h"
#include "server/tables/overlay.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

TableMemory TensorFlowModel::tables() const {
  TableMemory memory = table_reader_ == nullptr ? TableMemory() : table_reader_->memory();
  if (table_deltas_ != nullptr) table_deltas_->AddTo(&memory);
  return memory;
}

std::string TensorFlowModel::damage() const {
  return table_reader_ == nullptr ? std::string() : table_reader_->damage();
}

void TensorFlowModel::LogAs(const LogFields& fields) {
  for (const auto& [name, programs] : programs_) programs->LogAs(fields);
}

ModelStats TensorFlowModel::stats() const {
  ModelStats stats;
  for (const auto& [name, programs] : programs_) {
    for (StoreStats& store : programs->stores()) stats.stores.push_back(std::move(store));
    for (ProgramStats& program : programs->counts()) stats.programs.push_back(std::move(program));
  }
  return stats;
}

void TensorFlowModel::Serve() {
  std::set<std::string> declared;
  for (const auto& [name, signature] : saved_signatures_) {
    if (!absl::c_linear_search(options_.unserved_signatures, name)) declared.insert(name);
  }
  for (const std::string& name : declared) {
    ServedSignature*& served = by_number_.emplace_back();
    const auto found = programs_.find(name);
    if (found == programs_.end()) continue;
    served = &served_[name];
    *served = {absl::OkStatus(), found->second.get(), transcoding_.Find(name)};
  }
}

absl::Status TensorFlowModel::NotServed(std::string_view name) const {
  if (name.empty()) name = "serving_default";
  const auto found = served_.find(name);
  if (found != served_.end() && !found->second.status.ok()) return found->second.status;
  const auto append_name = [](std::string* out, const auto& entry) { out->append(entry.first); };
  return absl::FailedPreconditionError(
      absl::StrCat("Serving signature key \"", name, "\" not found; the model has {",
                   absl::StrJoin(programs_, ", ", append_name), "}"));
}

namespace {

const RequestPlan& AsPlan(const PlannedRequest& plan) {
  return static_cast<const RequestPlan&>(plan);
}

// Whether even a single request goes through the joined run, because it may need padding to an
// allowed batch size.
bool JoinsAlone(const RequestPlan& plan) {
  return plan.profile.group != 0 && !plan.rules->allowed_batch_sizes.empty();
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

std::shared_ptr<const tables::ReadsGeneration> TensorFlowModel::ReadTables(bool pinned) const {
  const bool changed = table_deltas_ != nullptr && table_deltas_->has_changed();
  if (!changed && !pinned) return nullptr;
  return std::make_shared<const tables::ReadsGeneration>(changed ? table_deltas_->now() : nullptr,
                                                         pinned);
}

Status TensorFlowModel::Run(const PlannedRequest& plan, std::unique_ptr<Outputs>* outputs) const {
  const auto reads = ReadTables();
  if (!JoinsAlone(AsPlan(plan))) return RunPlan(AsPlan(plan), outputs);
  BatchMember alone;
  alone.plan = &plan;
  RunJoined(RunMember, {&alone});
  *outputs = std::move(alone.outputs);
  return std::move(alone.status);
}

void TensorFlowModel::Run(std::vector<BatchMember>* members) const {
  const auto reads = ReadTables();
  std::map<uint64_t, std::vector<BatchMember*>> groups;
  for (BatchMember& member : *members) groups[member.plan->profile.group].push_back(&member);
  for (const auto& [number, group] : groups) {
    if (number != 0 && (group.size() > 1 || JoinsAlone(AsPlan(*group[0]->plan)))) {
      RunJoined(RunMember, group);
    } else {
      for (BatchMember* const member : group) RunMember(member);
    }
  }
}

std::unique_ptr<Slices> TensorFlowModel::Split(const PlannedRequest& planned) const {
  const RequestPlan& plan = AsPlan(planned);
  if (!plan.profile.can_be_split) return nullptr;
  const auto reads = ReadTables();
  return SliceRequest(plan);
}

}  // namespace colcast::engine
