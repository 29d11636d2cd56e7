// What of a loaded model's requests may run together, and by slices.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "server/engine/batch/joined_requests.h"
#include "server/engine/batch/sliced_request.h"
#include "server/engine/model.h"
#include "server/engine/row_index.h"
#include "server/states/without_states.h"

namespace colcast::engine {
namespace {

int64_t BytesOfStrings(const ColumnValues& values) {
  auto bytes = static_cast<int64_t>(values.payload.size());
  for (const std::vector<Bytes>* const parts : {&values.messages, &values.strings}) {
    for (const Bytes& part : *parts) bytes += static_cast<int64_t>(part.size());
  }
  return bytes;
}

// What reading the texts of a request is in proportion to. A text that is sent once, such as a
// query, is read with every row; each text has a beginning and an end besides its own tokens.
int64_t SizeOfTexts(const DecodedRequest& request, int64_t rows) {
  constexpr double kMarks = 8;
  constexpr double kMost = 1e15;
  double size = 0;
  for (const Column& column : request) {
    if (column.dtype != DT_STRING || column.dims.empty()) continue;
    const double times = column.dims[0] == 1 ? static_cast<double>(rows) : 1;
    size += times * static_cast<double>(BytesOfStrings(column.values));
  }
  return size == 0 ? 0 : static_cast<int64_t>(std::min(size + kMarks * rows, kMost));
}

}  // namespace

RequestProfile TensorFlowModel::Profile(const DecodedRequest& request,
                                        const BatchRules& rules) const {
  RequestProfile profile;
  for (const Column& column : request) {
    if (!column.dims.empty()) profile.rows = std::max(profile.rows, column.dims[0]);
  }
  const std::string_view name = request.model_spec().signature_name;
  const absl::StatusOr<const Programs*> programs = Find(name);
  thread_local std::vector<int> outputs;
  if (!programs.ok() ||
      !(*programs)->signature().SelectOutputs(request.output_filter(), &outputs).ok() ||
      (HasRowIndex(request) && !(*programs)->shares_indexed_runs())) {
    return profile;
  }
  if ((*programs)->has_row_cache()) profile.size = SizeOfTexts(request, profile.rows);
  profile.can_be_split = profile.rows > 1 && (*programs)->CanBeSplit(rules, outputs);
  // What is said for all rows of a request need not hold for another's.
  const bool has_setting = std::any_of(request.begin(), request.end(),
                                       [](const Column& column) { return column.dims.empty(); });
  if ((*programs)->CanBeJoined(rules, outputs) && !has_setting) {
    profile.group = absl::HashOf(*programs, outputs) | 1;
  }
  return profile;
}

bool TensorFlowModel::FillStates(const DecodedRequest& rows) const {
  bool any = false;
  for (const auto& [name, programs] : programs_) any |= programs->FillStates(rows);
  return any;
}

void TensorFlowModel::PredictBatch(const BatchRules& rules,
                                   std::vector<BatchMember>* members) const {
  const auto alone = [this](BatchMember* member) {
    member->status = Predict(*member->request, &member->outputs);
  };
  std::map<uint64_t, std::vector<BatchMember*>> groups;
  for (BatchMember& member : *members) {
    groups[Profile(*member.request, rules).group].push_back(&member);
  }
  for (const auto& [number, group] : groups) {
    if (number == 0) {
      for (BatchMember* const member : group) alone(member);
      continue;
    }
    const Programs& programs = **Find(group[0]->request->model_spec().signature_name);
    const Programs* const together = programs.joined();
    // One alone may have to be filled up to an allowed size, or gain by what many run as.
    if (group.size() == 1 && rules.allowed_batch_sizes.empty() && together == nullptr) {
      alone(group[0]);
      continue;
    }
    std::vector<BatchMember*> left = group;
    if (together != nullptr && together->CanBeJoined(rules, together->signature().all_outputs())) {
      RunTogetherAs(*together, rules, &left);
    }
    const auto joined = [&programs](const Batch& batch, const std::vector<int>& outputs,
                                    RunResult* result) {
      return programs.Run(batch, outputs, result);
    };
    RunJoined(programs, rules, {alone, joined, ExamplesOf(*group[0]->request)}, left);
  }
}

RunExamples TensorFlowModel::ExamplesOf(const DecodedRequest& request) const {
  if (!transcoding_.Reads(request.model_spec().signature_name)) return nullptr;
  return [this](const DecodedRequest& examples, RunResult* result) {
    return TranscodeAndRun(examples, result);
  };
}

Status TensorFlowModel::PredictWithoutStates(const BatchRules& rules, const DecodedRequest& request,
                                             std::unique_ptr<Outputs>* outputs) const {
  const states::WithoutStates without;
  return Model::PredictWithoutStates(rules, request, outputs);
}

// Leaves the members that `programs` does not take.
void TensorFlowModel::RunTogetherAs(const Programs& programs, const BatchRules& rules,
                                    std::vector<BatchMember*>* members) const {
  std::vector<BatchMember*> left;
  const auto leave = [&left](BatchMember* member) { left.push_back(member); };
  const auto joined = [&programs](const Batch& batch, const std::vector<int>& outputs,
                                  RunResult* result) {
    return programs.Run(batch, outputs, result);
  };
  RunJoined(programs, rules, {leave, joined, nullptr, /*one_too=*/true}, *members);
  *members = std::move(left);
}

std::unique_ptr<Slices> TensorFlowModel::Split(const DecodedRequest& request,
                                               const BatchRules& rules) const {
  const auto programs = Find(request.model_spec().signature_name);
  std::vector<int> outputs;
  if (!programs.ok() ||
      !(*programs)->signature().SelectOutputs(request.output_filter(), &outputs).ok() ||
      !(*programs)->CanBeSplit(rules, outputs)) {
    return nullptr;
  }
  const auto run = [of = *programs](const Batch& batch, const std::vector<int>& slice_outputs,
                                    RunResult* result) {
    return of->Run(batch, slice_outputs, result);
  };
  return SlicedRequest::Create(**programs, request, rules, run, ExamplesOf(request));
}

}  // namespace colcast::engine
