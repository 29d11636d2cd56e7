// Turns a SavedModel into signatures that can be run.
#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/in_parallel.h"
#include "server/engine/mapping/int8_files.h"
#include "server/engine/model.h"
#include "server/engine/op_libraries.h"
#include "server/engine/record/row_record.h"
#include "server/engine/row_trials.h"
#include "tensorflow/cc/saved_model/loader_util.h"
#include "tensorflow/cc/saved_model/reader.h"
#include "tensorflow/core/framework/op.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;

constexpr char kRunsAlone[] = ": its requests are not joined or split, and no states are cached: ";

bool IsRefusalOfSingleThreadedExecutor(const absl::Status& status) {
  return absl::StrContains(status.message(), "Single-threaded executor does not support");
}

// Whether the graph is certain to run with the single-threaded executor and the registered ops, so
// that it need not be prepared to find out.
bool RunsForCertain(const GraphDef& graph) {
  const tensorflow::FunctionLibraryDefinition functions(tensorflow::OpRegistry::Global(),
                                                        graph.library());
  const auto runs = [&](const tensorflow::NodeDef& node) {
    static constexpr std::string_view kRefused[] = {
        "Enter", "Exit", "Merge", "Switch", "NextIteration", "Variable", "VariableV2"};
    const tensorflow::OpDef* op = nullptr;
    return functions.LookUpOpDef(node.op(), &op).ok() &&
           absl::c_none_of(kRefused,
                           [&](std::string_view one) { return absl::EndsWith(node.op(), one); });
  };
  return absl::c_all_of(graph.node(), runs) &&
         absl::c_all_of(graph.library().function(), [&](const auto& function) {
           return absl::c_all_of(function.node_def(), runs);
         });
}

// Why the signatures must share a session; empty if they need not.
absl::StatusOr<std::string> WhyShared(const SignatureGraphs& graphs) {
  for (const auto& [name, graph] : graphs) {
    absl::StatusOr<std::string> state = SessionStateIn(graph);
    if (!state.ok()) return state;
    if (!state->empty()) {
      return absl::StrCat("signature \"", name, "\" has ", *state,
                          ", whose state all signatures share");
    }
  }
  return std::string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorFlowModel>> TensorFlowModel::Load(
    const std::string& directory, const std::vector<std::string>& tags, const Options& options,
    std::shared_ptr<const StateCaches> memories) {
  std::unique_ptr<TensorFlowModel> model(
      new TensorFlowModel(directory, options, std::move(memories)));
  absl::Status status = model->Load(tags);
  if (!status.ok()) return status;
  return model;
}

absl::Status TensorFlowModel::Load(const std::vector<std::string>& tags) {
  // With a thread pool the single-threaded executor would block a thread for each function that an
  // op calls; once all threads are blocked, no function can run.
  uses_default_executor_ = options_.inter_op_parallelism > 0;
  MetaGraphDef saved;
  absl::Status status =
      tensorflow::ReadMetaGraphDefFromSavedModel(directory_, {tags.begin(), tags.end()}, &saved);
  if (!status.ok()) return status;
  saved_signatures_ = saved.signature_def();
  ProvideOpsOf(saved.graph_def());  // an unregistered op would count as impure
  impure_ = FindImpure(saved, options_.unserved_signatures);
  const NeededGraphs needed(saved.graph_def());
  SignatureGraphs graphs = GraphsToServe(needed);
  const absl::StatusOr<std::string> shared = WhyShared(graphs);
  if (!shared.ok()) return shared.status();
  status = Restore(saved, needed, *shared);
  if (!status.ok()) return status;
  RewrittenSignatures rewritten = Rewritten(saved, graphs);
  status = ReadMapped(&graphs, &rewritten);
  if (!status.ok()) return status;
  const std::vector<RecordedSignatures> records = ReadRecordedSignaturesOf(directory_);
  std::vector<std::string> waiting;
  for (const auto& [name, graph] : graphs) {
    if (MayWait(name, records) && RunsForCertain(graph)) waiting.push_back(name);
  }
  std::map<std::string, RowRecord> by_name = RecordsByName(records, saved_signatures_);
  SetOneRowInputs(graphs, &by_name);
  RunApart(&by_name);
  AddSignatures(graphs, rewritten, by_name, waiting);
  ServeMapped();
  programs_ = MakePrograms(signatures_, saved_signatures_, records, *memories_, options_);
  AddNotes(records);
  LoadTranscoding(records);
  for (const std::string& name : waiting) {
    if (transcoding_.Find(name) == nullptr) PrepareWaiting(name);
  }
  Serve();
  return absl::OkStatus();
}

absl::Status TensorFlowModel::Restore(const MetaGraphDef& saved, const NeededGraphs& needed,
                                      const std::string& why_shared) {
  const bool shared = !why_shared.empty();
  if (options_.map_tables) {
    std::string init_op;
    absl::Status status = tensorflow::internal::GetInitOp(directory_, saved, &init_op);
    if (!status.ok()) return status;
    auto initializing =
        needed.Of(init_op.empty() ? std::vector<std::string>() : std::vector<std::string>{init_op});
    if (!initializing.ok()) return initializing.status();
    mapped_ = MappedVariables(saved.graph_def(), *initializing, options_.map_tables_min_bytes);
    if (shared) mapped_.KeepInMemory(why_shared);
  }
  auto sessions =
      ModelSessions::Restore(directory_, saved, needed, options_, shared, mapped_.any());
  if (sessions.ok() && !mapped_.Find((*sessions)->restored())) {
    mapped_.KeepInMemory("the checkpoint restores a variable whose name is not in the graph");
    sessions = ModelSessions::Restore(directory_, saved, needed, options_, shared, /*maps=*/false);
  }
  if (!sessions.ok()) return sessions.status();
  sessions_ = *std::move(sessions);
  return absl::OkStatus();
}

absl::Status TensorFlowModel::ReadMapped(SignatureGraphs* graphs, RewrittenSignatures* rewritten) {
  for (auto& [name, graph] : *graphs) mapped_.Read(name, saved_signatures_.at(name), &graph);
  for (auto& [name, one] : *rewritten) {
    mapped_.Read(name, saved_signatures_.at(name), &one.graph);
  }
  return mapped_.CopyOthers(sessions_->restored());
}

void TensorFlowModel::ServeMapped() {
  mapped_.DropFreed(sessions_->restored());
  for (std::string& note : mapped_.notes()) description_.notes.push_back(std::move(note));
  auto tables = MappedTables::Of(sessions_->restored());
  if (tables != nullptr && !tables->tables().empty()) {
    table_reader_ = std::make_unique<TableReaderThread>(std::move(tables));
  }
  if (options_.map_tables) {
    table_deltas_ = std::make_unique<TableDeltas>(directory_, mapped_.Tables());
  } else if (std::string note = UnusedDeltas(directory_); !note.empty()) {
    description_.notes.push_back(std::move(note));
  }
}

struct TensorFlowModel::Added {
  std::unique_ptr<Signature> signature;
  absl::Status status;
  const RewrittenSignature* rewritten = nullptr;  // null if it runs as saved
  std::string note;
};

void TensorFlowModel::AddSignatures(const SignatureGraphs& graphs,
                                    const RewrittenSignatures& rewritten,
                                    const std::map<std::string, RowRecord>& records,
                                    const std::vector<std::string>& waiting) {
  std::vector<std::pair<std::string, const GraphDef*>> jobs;
  for (const auto& [name, graph] : graphs) jobs.emplace_back(name, &graph);
  absl::c_stable_sort(jobs, [](const auto& one, const auto& other) {  // longest first
    return one.second->ByteSizeLong() > other.second->ByteSizeLong();
  });
  std::vector<Added> all(jobs.size());
  InParallel(jobs.size(), [&](size_t i) {
    const std::string& name = jobs[i].first;
    const auto record = records.find(name);
    const auto found = rewritten.find(name);
    all[i] = Add(name, record == records.end() ? RowRecord() : record->second, *jobs[i].second,
                 found == rewritten.end() ? nullptr : &found->second,
                 !absl::c_linear_search(waiting, name));
  });
  std::map<std::string, TablesRead> read;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string& name = jobs[i].first;
    Added& added = all[i];
    if (!int8_tables_.empty()) {
      const GraphDef& graph = added.rewritten == nullptr ? *jobs[i].second : added.rewritten->graph;
      read[name] = ReadBy(graph, saved_signatures_.at(name));
    }
    if (!added.note.empty()) description_.notes.push_back(std::move(added.note));
    if (added.rewritten != nullptr) description_.graphs.push_back({name, added.rewritten->says});
    if (added.status.ok()) {
      signatures_[name] = std::move(added.signature);
    } else {
      served_[name].status = added.status;
      if (absl::StartsWith(name, "__")) continue;
      description_.notes.push_back(
          absl::StrCat("signature \"", name, "\" is not served: ", added.status.message()));
    }
  }
  for (std::string& note : KeepReadForms(int8_tables_, read, sessions_->restored())) {
    description_.notes.push_back(std::move(note));
  }
}

TensorFlowModel::Added TensorFlowModel::Add(const std::string& name, const RowRecord& record,
                                            const GraphDef& saved,
                                            const RewrittenSignature* rewritten, bool prepared) {
  Added added;
  const tensorflow::SignatureDef& declared = saved_signatures_.at(name);
  if (rewritten != nullptr) {
    added.status = MakeSignature(declared, record, rewritten->graph, prepared, &added.signature);
    added.note = absl::StrCat("signature \"", name, "\": ", rewritten->says);
    if (added.status.ok()) {
      added.rewritten = rewritten;
      return added;
    }
    absl::StrAppend(&added.note, ": runs as it was saved: ", added.status.message());
  }
  added.status = MakeSignature(declared, record, saved, prepared, &added.signature);
  return added;
}

absl::Status TensorFlowModel::MakeSignature(const tensorflow::SignatureDef& declared,
                                            const RowRecord& record, const GraphDef& graph,
                                            bool prepared, std::unique_ptr<Signature>* made) {
  const auto make = [&] {
    const absl::StatusOr<tensorflow::Session*> session = sessions_->Add(
        graph, uses_default_executor_ ? Executor::kDefault : Executor::kSingleThreaded);
    if (!session.ok()) return session.status();
    auto signature =
        Signature::Create(declared, *session, options_, record, mapped_.TablesOf(graph));
    if (!signature.ok()) return signature.status();
    (*signature)->set_lookup_errors(LookupErrors(graph, (*signature)->inputs()));
    absl::Status status = prepared ? (*signature)->Prepare() : absl::OkStatus();
    if (status.ok()) *made = *std::move(signature);
    return status;
  };
  absl::Status status = make();
  if (!IsRefusalOfSingleThreadedExecutor(status)) return WithMissingOp(status);
  uses_default_executor_ = true;
  return WithMissingOp(make());
}

void TensorFlowModel::LoadTranscoding(const std::vector<RecordedSignatures>& records) {
  MetaGraphDef served;
  for (const auto& [name, signature] : saved_signatures_) {
    if (absl::c_linear_search(options_.unserved_signatures, name)) continue;
    (*served.mutable_signature_def())[name] = signature;
  }
  description_.signatures = served.SerializeAsString();
  transcoding_.Load(
      records, served.signature_def(),
      [this](const std::string& name) -> const Programs* {
        const auto found = programs_.find(name);
        return found == programs_.end() ? nullptr : found->second.get();
      },
      impure_, options_.example_transcoding);
  std::vector<std::string>& notes = description_.notes;
  notes.insert(notes.begin(), transcoding_.notes().begin(), transcoding_.notes().end());
}

bool TensorFlowModel::MayWait(const std::string& name,
                              const std::vector<RecordedSignatures>& records) const {
  if (absl::StartsWith(name, "__saved_model")) return true;  // restores and initializes variables
  return options_.example_transcoding != ExampleTranscoding::kOff &&
         absl::c_any_of(records, [&](const auto& recorded) { return recorded.source == name; });
}

void TensorFlowModel::PrepareWaiting(const std::string& name) {
  const auto found = signatures_.find(name);
  if (found == signatures_.end() || absl::StartsWith(name, "__saved_model")) return;
  if (absl::Status status = found->second->Prepare(); !status.ok()) {
    programs_.erase(name);
    served_[name].status = status;
  }
}

void TensorFlowModel::SetOneRowInputs(const SignatureGraphs& graphs,
                                      std::map<std::string, RowRecord>* by_name) const {
  for (const auto& [name, graph] : graphs) {
    if (by_name->count(name) > 0) continue;
    const auto impurity = impure_.find(name);
    // A trial runs the signature, so a signature that writes must not be tried.
    const bool writes = impurity != impure_.end() && impurity->second.writes;
    (*by_name)[name].one_row_inputs = writes || TakesSparseParts(graph, saved_signatures_.at(name))
                                          ? OneRowInputs::kAsSent
                                          : OneRowInputs::kByTrial;
  }
}

void TensorFlowModel::RunApart(std::map<std::string, RowRecord>* by_name) {
  for (const auto& [name, impurity] : impure_) {
    RowRecord& rows = (*by_name)[name];
    rows.recorded = true;
    rows.independent = false;
    rows.why_not = impurity.why;
    description_.notes.push_back(
        absl::StrCat("signature \"", name, "\"", kRunsAlone, impurity.why));
  }
}

void TensorFlowModel::AddNotes(const std::vector<RecordedSignatures>& records) {
  for (const RecordedSignatures& recorded : records) {
    for (const auto& [name, rows] : recorded.rows) {
      if (rows.independent || impure_.count(name) > 0) continue;
      description_.notes.push_back(
          absl::StrCat("signature \"", name, "\"", kRunsAlone, rows.why_not));
    }
    if (recorded.rows.count(recorded.columnar) > 0) continue;
    description_.notes.push_back(
        absl::StrCat("signature \"", recorded.columnar,
                     "\": it is not known whether its rows depend on each other, so ",
                     "nothing is cached, joined or split; export the model again"));
  }
}

}  // namespace colcast::engine
