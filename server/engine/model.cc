#include "server/engine/model.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/engine/batch.h"
#include "server/engine/export_record.h"
#include "server/engine/op_libraries.h"
#include "server/engine/pieces.h"
#include "server/engine/status.h"
#include "server/engine/tensor_outputs.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {
namespace {

constexpr std::string_view kDefaultSignature = "serving_default";

// One input, and nothing among the outputs that would make the others unfetchable.
bool CanBeJoined(const tensorflow::SignatureDef& signature) {
  const auto& outputs = signature.outputs();
  return signature.inputs().size() == 1 &&
         std::all_of(outputs.begin(), outputs.end(), [](const auto& output) {
           return output.second.encoding_case() == tensorflow::TensorInfo::kName;
         });
}

int64_t BytesOfStrings(const ColumnValues& values) {
  int64_t bytes = 0;
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

bool IsRefusalOfSingleThreadedExecutor(const absl::Status& status) {
  return absl::StrContains(status.message(), "Single-threaded executor does not support");
}

tensorflow::SessionOptions MakeSessionOptions(const Options& options, Executor executor) {
  tensorflow::SessionOptions session_options;
  session_options.config.ParseFromString(options.session_config);
  if (executor == Executor::kSingleThreaded) {
    session_options.config.mutable_experimental()->set_executor_type("SINGLE_THREADED_EXECUTOR");
  }
  session_options.config.set_intra_op_parallelism_threads(options.intra_op_parallelism);
  // The pool exists even where operations run inline: asynchronous ones need a thread.
  session_options.config.set_inter_op_parallelism_threads(
      options.inter_op_parallelism == 0 ? 1 : options.inter_op_parallelism);
  return session_options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorFlowModel>> TensorFlowModel::Load(
    const std::string& directory, const std::vector<std::string>& tags, const Options& options,
    std::shared_ptr<const StateMemories> memories) {
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
  bundle_ = std::make_unique<tensorflow::SavedModelBundleLite>();
  absl::Status status = tensorflow::LoadSavedModel(
      MakeSessionOptions(options, executor), tensorflow::RunOptions(), directory,
      std::unordered_set<std::string>(tags.begin(), tags.end()), bundle_.get());
  if (!status.ok()) return status;
  tensorflow::MetaGraphDef signatures;
  for (const auto& [name, signature] : bundle_->GetSignatures()) {
    (*signatures.mutable_signature_def())[name] = signature;
    status = AddSignature(name, signature, options);
    if (IsRefusalOfSingleThreadedExecutor(status)) return status;
    if (!status.ok()) unusable_[name] = status;
  }
  signatures_ = signatures.SerializeAsString();
  JoinSignatures(options);
  UseExactSignatures();
  UseParts(directory, options);
  UseKnownRows(directory);
  transcoding_.Load(
      directory, signatures.signature_def(),
      [this](const std::string& name) -> const SignatureRunner* {
        const auto found = runners_.find(name);
        return found == runners_.end() ? nullptr : found->second.get();
      },
      options.example_transcoding);
  return absl::OkStatus();
}

absl::Status TensorFlowModel::AddSignature(const std::string& name,
                                           const tensorflow::SignatureDef& signature,
                                           const Options& options) {
  absl::StatusOr<std::unique_ptr<SignatureRunner>> runner =
      SignatureRunner::Create(signature, bundle_->GetSession(), options);
  if (!runner.ok()) return runner.status();
  absl::Status prepared = RetryWithMissingOps([&] { return (*runner)->Prepare(); });
  if (!prepared.ok()) return prepared;
  runners_[name] = *std::move(runner);
  return absl::OkStatus();
}

void TensorFlowModel::UseExactSignatures() {
  for (const auto& [name, runner] : runners_) {
    const std::string exact_name = name + "_exact";
    const auto exact = runners_.find(exact_name);
    if (exact != runners_.end()) runner->UseExact(exact_name, *exact->second);
  }
}

void TensorFlowModel::UseParts(const std::string& directory, const Options& options) {
  for (const auto& [name, runner] : runners_) {
    const absl::string_view late = name;
    if (absl::EndsWith(late, "_late")) {
      UseParts(directory, std::string(absl::StripSuffix(late, "_late")), options);
    }
  }
}

void TensorFlowModel::UseParts(const std::string& directory, const std::string& name,
                               const Options& options) {
  const auto find = [&](const std::string& suffix) -> SignatureRunner* {
    const auto found = runners_.find(name + suffix);
    return found == runners_.end() ? nullptr : found->second.get();
  };
  SignatureRunner* const late = find("_late");
  SignatureRunner* const whole = find("");
  const PartSignatures signatures{late,
                                  find("_user"),
                                  find("_item"),
                                  find("_pair"),
                                  TakesManyUsersPerRun(directory, name),
                                  PaddedColumns(directory, name)};
  std::unique_ptr<Parts> parts;
  if (signatures.user != nullptr && signatures.item != nullptr && signatures.pair != nullptr) {
    parts = Parts::Create(signatures, *memories_);
  }
  late->UseParts(parts.get());
  // Each of the two has its own way with several users: the whole one is exact.
  if (whole != nullptr && whole->output_aliases() == late->output_aliases()) {
    const tensorflow::SignatureDef& declared = bundle_->GetSignatures().at(name + "_late");
    for (SignatureRunner* const runner : {late, whole}) {
      std::unique_ptr<SeveralUsers> several_users =
          SeveralUsers::Create(declared, *whole, runner == late ? parts.get() : nullptr, options);
      runner->UseSeveralUsers(several_users.get());
      several_users_.push_back(std::move(several_users));
    }
    if (late->computes_users_once()) whole->JoinAs(late);
  }
  if (parts != nullptr) parts_[name + "_late"] = std::move(parts);
}

void TensorFlowModel::UseKnownRows(const std::string& directory) {
  for (const std::string& name : SignaturesOfIndependentRows(directory)) {
    const auto runner = runners_.find(name);
    if (runner == runners_.end() || runner->second->has_parts()) continue;
    auto known_rows = std::make_unique<KnownRows>(runner->second.get(), *memories_);
    runner->second->UseKnownRows(known_rows.get());
    known_rows_[name] = std::move(known_rows);
  }
}

std::vector<StoreStats> TensorFlowModel::stores() const {
  std::vector<StoreStats> stores;
  for (const auto& [name, parts] : parts_) {
    for (const states::StoreStats& stats : parts->stats()) stores.push_back({name, stats});
  }
  for (const auto& [name, rows] : known_rows_) stores.push_back({name, rows->stats()});
  return stores;
}

void TensorFlowModel::JoinSignatures(const Options& options) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> by_input;
  for (const auto& [name, signature] : bundle_->GetSignatures()) {
    if (!CanBeJoined(signature) || runners_.count(name) == 0) continue;
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
    absl::StatusOr<std::shared_ptr<SignatureRunner>> runner =
        SignatureRunner::Create(joined, bundle_->GetSession(), options);
    if (!runner.ok()) continue;
    for (const std::string& name : names) joined_[name] = *runner;
  }
}

absl::StatusOr<const SignatureRunner*> TensorFlowModel::FindRunner(
    std::string_view signature_name) const {
  const std::string_view name = signature_name.empty() ? kDefaultSignature : signature_name;
  const auto runner = runners_.find(name);
  if (runner != runners_.end()) return runner->second.get();
  const auto unusable = unusable_.find(name);
  if (unusable != unusable_.end()) return unusable->second;
  const auto append_name = [](std::string* out, const auto& entry) { out->append(entry.first); };
  return absl::FailedPreconditionError(
      absl::StrCat("Serving signature key \"", name, "\" not found; the model has {",
                   absl::StrJoin(runners_, ", ", append_name), "}"));
}

Status TensorFlowModel::Predict(const DecodedRequest& request,
                                std::unique_ptr<Outputs>* outputs) const {
  RunResult result;
  if (absl::Status status = RunAny(request, &result); !status.ok()) return FromAbsl(status);
  *outputs = std::make_unique<TensorOutputs>(std::move(result));
  return OkStatus();
}

absl::Status TensorFlowModel::RunAny(const DecodedRequest& request, RunResult* result) const {
  const auto run = [this](std::string_view name, const DecodedRequest& columns, RunResult* answer) {
    return RunSignature(name, columns, answer);
  };
  if (transcoding_.Answer(request, run, result)) return absl::OkStatus();
  return run(request.model_spec().signature_name, request, result);
}

absl::Status TensorFlowModel::RunSignature(std::string_view name, const DecodedRequest& request,
                                           RunResult* result) const {
  const absl::StatusOr<const SignatureRunner*> runner = FindRunner(name);
  return runner.ok() ? (*runner)->Run(request, result) : runner.status();
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

RequestProfile TensorFlowModel::Profile(const DecodedRequest& request,
                                        const BatchRules& rules) const {
  RequestProfile profile;
  for (const Column& column : request) {
    if (!column.dims.empty()) profile.rows = std::max(profile.rows, column.dims[0]);
  }
  const std::string_view name = request.model_spec().signature_name;
  const absl::StatusOr<const SignatureRunner*> runner = FindRunner(name);
  thread_local std::vector<int> outputs;
  // Requests with several users have a row_to_user of their own.
  if (!runner.ok() || !(*runner)->SelectOutputs(request.output_filter(), &outputs).ok() ||
      request.Find(kRowToUser) != nullptr) {
    return profile;
  }
  if ((*runner)->has_known_rows()) profile.size = SizeOfTexts(request, profile.rows);
  profile.divisible = profile.rows > 1 && (*runner)->CanBeDivided(rules, outputs);
  // What is said for all rows of a request need not hold for another's.
  const bool has_setting = std::any_of(request.begin(), request.end(),
                                       [](const Column& column) { return column.dims.empty(); });
  if ((*runner)->CanBeJoined(rules, outputs) && !has_setting) {
    profile.group = absl::HashOf(*runner, outputs) | 1;
  }
  return profile;
}

void TensorFlowModel::PredictBatch(const BatchRules& rules,
                                   std::vector<BatchMember>* members) const {
  const auto alone = [this](BatchMember* member) {
    member->status = Predict(*member->request, &member->outputs);
  };
  const auto joined = [this](const DecodedRequest& request, RunResult* result) {
    return RunAny(request, result);
  };
  std::map<uint64_t, std::vector<BatchMember*>> groups;
  for (BatchMember& member : *members) {
    groups[Profile(*member.request, rules).group].push_back(&member);
  }
  for (const auto& [number, group] : groups) {
    // One alone may have to be filled up to an allowed size.
    if (number == 0 || (group.size() == 1 && rules.allowed_batch_sizes.empty())) {
      for (BatchMember* const member : group) alone(member);
      continue;
    }
    const SignatureRunner& runner = **FindRunner(group[0]->request->model_spec().signature_name);
    std::vector<BatchMember*> left = group;
    const SignatureRunner* const late = runner.joined_as();
    const bool as_late = late != nullptr && late->CanBeJoined(rules, late->all_outputs());
    if (as_late) RunJoinedAs(*late, rules, &left);
    RunBatch(runner, rules, {alone, joined}, left);
  }
}

// Leaves the members that `late` does not take, or that would not run together there.
void TensorFlowModel::RunJoinedAs(const SignatureRunner& late, const BatchRules& rules,
                                  std::vector<BatchMember*>* members) const {
  std::vector<BatchMember*> left;
  const auto leave = [&left](BatchMember* member) { left.push_back(member); };
  const auto joined = [&late](const DecodedRequest& request, RunResult* result) {
    return late.Run(request, result);
  };
  RunBatch(late, rules, {leave, joined}, *members);
  *members = std::move(left);
}

std::unique_ptr<Pieces> TensorFlowModel::Divide(const DecodedRequest& request,
                                                const BatchRules& rules,
                                                int64_t rows_per_piece) const {
  const auto runner = FindRunner(request.model_spec().signature_name);
  std::vector<int> outputs;
  if (!runner.ok() || !(*runner)->SelectOutputs(request.output_filter(), &outputs).ok() ||
      !(*runner)->CanBeDivided(rules, outputs)) {
    return nullptr;
  }
  return RequestPieces::Create(
      **runner, request, rules, rows_per_piece,
      [this](const DecodedRequest& piece, RunResult* result) { return RunAny(piece, result); });
}

}  // namespace colcast::engine
