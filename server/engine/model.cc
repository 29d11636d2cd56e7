#include "server/engine/model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/engine/record/records_by_name.h"
#include "server/engine/row_index.h"
#include "server/engine/status.h"
#include "server/engine/tensor_outputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {
namespace {

constexpr std::string_view kDefaultSignature = "serving_default";
constexpr char kRunsAlone[] = ": its requests run alone and whole, and nothing is kept: ";

// One input, and nothing among the outputs that would make the others unfetchable.
bool CanBeJoined(const tensorflow::SignatureDef& signature) {
  const auto& outputs = signature.outputs();
  return signature.inputs().size() == 1 &&
         std::all_of(outputs.begin(), outputs.end(), [](const auto& output) {
           return output.second.encoding_case() == tensorflow::TensorInfo::kName;
         });
}

// Their names: a stage after the signature that it is a stage of, which says what it may lose; what
// reads states after the stages that compute them.
std::vector<std::string> InOrderOfChoice(const SignatureMap& declared,
                                         const std::map<std::string, std::string>& late_of) {
  std::vector<std::string> names;
  for (const auto& [name, signature] : declared) names.push_back(name);
  const auto place = [&](const std::string& name) {
    const auto& inputs = declared.at(name).inputs();
    return late_of.count(name) + inputs.count(std::string(kRowToUser));
  };
  std::stable_sort(
      names.begin(), names.end(),
      [&](const std::string& one, const std::string& other) { return place(one) < place(other); });
  return names;
}

bool IsRefusalOfSingleThreadedExecutor(const absl::Status& status) {
  return absl::StrContains(status.message(), "Single-threaded executor does not support");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorFlowModel>> TensorFlowModel::Load(
    const std::string& directory, const std::vector<std::string>& tags, const Options& options,
    std::shared_ptr<const StateCaches> memories) {
  std::unique_ptr<TensorFlowModel> model(new TensorFlowModel(memories));
  absl::Status status = absl::OkStatus();
  if (options.inter_op_parallelism == 0) {
    status = model->Load(directory, tags, options, Executor::kSingleThreaded);
    if (status.ok()) return model;
    if (!IsRefusalOfSingleThreadedExecutor(status)) return status;
    model.reset(new TensorFlowModel(memories));
  }
  status = model->Load(directory, tags, options, Executor::kDefault);
  if (!status.ok()) return status;
  return model;
}

absl::Status TensorFlowModel::Load(const std::string& directory,
                                   const std::vector<std::string>& tags, const Options& options,
                                   Executor executor) {
  std::optional<SignatureChooser> chooser;
  if (options.graph_optimization != GraphOptimization::kOff) {
    chooser.emplace(directory, tags, options);
  }
  SignatureChooser* const chooses = chooser ? &*chooser : nullptr;
  absl::Status status = LoadBundle(directory, tags, options, executor, chooses);
  if (!status.ok()) return status;
  const SignatureMap& declared = bundle_->GetSignatures();
  const std::vector<RecordedSignatures> records = ReadRowRecordsOf(directory);
  std::map<std::string, RowRecord> by_name = RecordsByName(records, declared);
  RunApart(&by_name);
  std::map<std::string, std::string> late_of = LateOfStages(records, declared);
  if (chooser) chooser->SetStages(late_of);
  tensorflow::MetaGraphDef signatures;
  for (const std::string& name : InOrderOfChoice(declared, late_of)) {
    const tensorflow::SignatureDef& signature = declared.at(name);
    if (absl::c_linear_search(options.unserved_signatures, name)) {
      unusable_[name] = absl::FailedPreconditionError(absl::StrCat(
          "signature \"", name, "\" is not served here: it is among --unserved_signatures"));
      continue;
    }
    (*signatures.mutable_signature_def())[name] = signature;
    status = AddSignature(name, signature, by_name[name], options, chooses);
    if (IsRefusalOfSingleThreadedExecutor(status)) return status;
    if (!status.ok()) unusable_[name] = status;
  }
  if (chooser) {
    if (status = chooser->Keep(); !status.ok()) notes_.emplace_back(status.message());
  }
  declared_ = signatures.SerializeAsString();
  JoinSignatures(options);
  for (const auto& [name, joined] : joined_) tables_.ServeAsSaved(name);
  for (std::string& note : tables_.Drop(bundle_->GetSession())) notes_.push_back(std::move(note));
  programs_ = MakePrograms(signatures_, declared, records, *memories_, options);
  AddNotes(records);
  transcoding_.Load(
      directory, signatures.signature_def(),
      [this](const std::string& name) -> const Programs* {
        const auto found = programs_.find(name);
        return found == programs_.end() ? nullptr : found->second.get();
      },
      impure_, options.example_transcoding);
  return absl::OkStatus();
}

void TensorFlowModel::RunApart(std::map<std::string, RowRecord>* by_name) {
  for (const auto& [name, impurity] : impure_) {
    RowRecord& rows = (*by_name)[name];
    rows.recorded = true;
    rows.independent = false;
    rows.why_not = impurity.why;
    notes_.push_back(absl::StrCat("signature \"", name, "\"", kRunsAlone, impurity.why));
  }
}

absl::Status TensorFlowModel::AddSignature(const std::string& name,
                                           const tensorflow::SignatureDef& declared,
                                           const RowRecord& record, const Options& options,
                                           SignatureChooser* chooser) {
  absl::StatusOr<std::unique_ptr<Signature>> original =
      Signature::Create(declared, bundle_->GetSession(), options, record);
  if (!original.ok()) return original.status();
  SignatureChooser::Chosen chosen;
  if (chooser != nullptr) chosen = chooser->TakeKept(name, **original);
  if (chosen.signature == nullptr) {
    if (absl::Status status = (*original)->Prepare(); !status.ok()) return status;
    if (chooser != nullptr && chosen.why.empty()) chosen = chooser->Choose(name, **original);
  }
  tables_.Serve(name, chosen.form == nullptr ? nullptr : &chosen.form->tables);
  signatures_[name] =
      chosen.signature == nullptr ? *std::move(original) : std::move(chosen.signature);
  if (chosen.why.empty()) return absl::OkStatus();
  notes_.push_back(absl::StrCat("signature \"", name, "\": ", chosen.why));
  graphs_.push_back({name, std::move(chosen.why)});
  return absl::OkStatus();
}

void TensorFlowModel::AddNotes(const std::vector<RecordedSignatures>& records) {
  for (const RecordedSignatures& recorded : records) {
    for (const auto& [name, rows] : recorded.rows) {
      if (rows.independent || impure_.count(name) > 0) continue;
      notes_.push_back(absl::StrCat("signature \"", name, "\"", kRunsAlone, rows.why_not));
    }
    if (recorded.rows.count(recorded.columnar) > 0) continue;
    notes_.push_back(absl::StrCat("signature \"", recorded.columnar,
                                  "\": it is not known whether its rows depend on each other, so ",
                                  "nothing is kept, joined or split; export the model again"));
  }
}

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

void TensorFlowModel::JoinSignatures(const Options& options) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> by_input;
  for (const auto& [name, signature] : bundle_->GetSignatures()) {
    if (!CanBeJoined(signature) || signatures_.count(name) == 0) continue;
    const auto& [alias, info] = *signature.inputs().begin();
    by_input[{alias, info.name()}].push_back(name);
  }
  for (const auto& [input, names] : by_input) {
    if (names.size() == 1) continue;
    tensorflow::SignatureDef joined;
    for (const std::string& name : names) {
      const tensorflow::SignatureDef& signature = bundle_->GetSignatures().at(name);
      *joined.mutable_inputs() = signature.inputs();
      for (const auto& [alias, info] : signature.outputs()) {
        (*joined.mutable_outputs())[absl::StrCat(name, "/", alias)] = info;
      }
    }
    absl::StatusOr<std::shared_ptr<Signature>> all =
        Signature::Create(joined, bundle_->GetSession(), options);
    if (!all.ok()) continue;
    for (const std::string& name : names) joined_[name] = *all;
  }
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
