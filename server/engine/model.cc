#include "server/engine/model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/status.h"
#include "server/engine/tensor_outputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {
namespace {

constexpr std::string_view kDefaultSignature = "serving_default";

}  // namespace

std::vector<std::string> TensorFlowModel::notes() const {
  std::vector<std::string> notes = transcoding_.notes();
  notes.insert(notes.end(), notes_.begin(), notes_.end());
  return notes;
}

std::vector<StoreStats> TensorFlowModel::stores() const {
  std::vector<StoreStats> stores;
  for (const auto& [name, programs] : programs_) {
    for (StoreStats& stats : programs->stores()) stores.push_back(std::move(stats));
  }
  return stores;
}

std::vector<ProgramStats> TensorFlowModel::programs() const {
  std::vector<ProgramStats> counts;
  for (const auto& [name, programs] : programs_) {
    for (ProgramStats& stats : programs->counts()) counts.push_back(std::move(stats));
  }
  return counts;
}

absl::StatusOr<const Programs*> TensorFlowModel::Find(std::string_view signature_name) const {
  const std::string_view name = signature_name.empty() ? kDefaultSignature : signature_name;
  const auto found = programs_.find(name);
  if (found != programs_.end()) return found->second.get();
  const auto unusable = unusable_.find(name);
  if (unusable != unusable_.end()) return unusable->second;
  const auto append_name = [](std::string* out, const auto& entry) { out->append(entry.first); };
  return absl::FailedPreconditionError(
      absl::StrCat("Serving signature key \"", name, "\" not found; the model has {",
                   absl::StrJoin(programs_, ", ", append_name), "}"));
}

Status TensorFlowModel::Predict(const DecodedRequest& request,
                                std::unique_ptr<Outputs>* outputs) const {
  RunResult result;
  if (absl::Status status = RunAny(request, &result); !status.ok()) return FromAbsl(status);
  *outputs = std::make_unique<TensorOutputs>(std::move(result));
  return OkStatus();
}

bool TensorFlowModel::TranscodeAndRun(const DecodedRequest& examples, RunResult* result) const {
  const auto run = [this](std::string_view name, const DecodedRequest& columns, RunResult* answer) {
    return RunSignature(name, columns, answer);
  };
  return transcoding_.Answer(examples, run, result);
}

absl::Status TensorFlowModel::RunAny(const DecodedRequest& request, RunResult* result) const {
  if (TranscodeAndRun(request, result)) return absl::OkStatus();
  return RunSignature(request.model_spec().signature_name, request, result);
}

absl::Status TensorFlowModel::RunSignature(std::string_view name, const DecodedRequest& request,
                                           RunResult* result) const {
  const absl::StatusOr<const Programs*> programs = Find(name);
  return programs.ok() ? (*programs)->Run(request, result) : programs.status();
}

Status TensorFlowModel::PredictTogether(const DecodedRequest& request,
                                        std::unique_ptr<Outputs>* outputs) const {
  const auto joined = joined_.find(request.model_spec().signature_name);
  if (joined == joined_.end()) {
    return FailedPrecondition("no signature shares the input of \"",
                              request.model_spec().signature_name, '"');
  }
  RunResult result;
  const auto run = [this](std::string_view name, const DecodedRequest& columns, RunResult* answer) {
    return RunSignature(name, columns, answer);
  };
  if (!transcoding_.AnswerTogether(request, run, &result)) {
    const absl::Status status = joined->second->Run(request, &result);
    if (!status.ok()) return FromAbsl(status);
  }
  *outputs = std::make_unique<TensorOutputs>(std::move(result));
  return OkStatus();
}

Status TensorFlowModel::Check(const DecodedRequest& request) const {
  const absl::StatusOr<const Programs*> programs = Find(request.model_spec().signature_name);
  return FromAbsl(programs.ok() ? (*programs)->Check(request) : programs.status());
}

}  // namespace colcast::engine
