// How a model's graph becomes a session.
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/checkpoint.h"
#include "server/engine/model.h"
#include "server/engine/scalar_conditions.h"
#include "tensorflow/cc/saved_model/reader.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {
namespace {

using tensorflow::SavedModelBundleLite;
using tensorflow::Session;
using tensorflow::SessionOptions;

SessionOptions MakeSessionOptions(const Options& options, Executor executor) {
  SessionOptions session_options;
  session_options.config.ParseFromString(options.session_config);
  if (executor == Executor::kSingleThreaded) {
    session_options.config.mutable_experimental()->set_executor_type("SINGLE_THREADED_EXECUTOR");
  }
  session_options.config.set_intra_op_parallelism_threads(options.intra_op_parallelism);
  // The pool exists even where operations run inline: asynchronous ones need a thread.
  session_options.config.set_inter_op_parallelism_threads(
      options.inter_op_parallelism == 0 ? 1 : options.inter_op_parallelism);
  // The session keeps no graph that it does not run.
  auto* const experimental = session_options.config.mutable_experimental();
  experimental->set_optimize_for_static_graph(true);
  experimental->set_disable_output_partition_graphs(true);
  return session_options;
}

}  // namespace

absl::Status TensorFlowModel::LoadBundle(const std::string& directory,
                                         const std::vector<std::string>& tags,
                                         const Options& options, Executor executor,
                                         SignatureChooser* chooser) {
  const SessionOptions session_options = MakeSessionOptions(options, executor);
  const std::unordered_set<std::string> tag_set(tags.begin(), tags.end());
  tensorflow::MetaGraphDef model;
  absl::Status status = tensorflow::ReadMetaGraphDefFromSavedModel(directory, tag_set, &model);
  if (status.ok()) status = CheckCheckpoint(directory, model);
  if (!status.ok()) return status;
  impure_ = FindImpure(model, options.unserved_signatures);
  if (executor == Executor::kSingleThreaded) RequireScalarConditions(model.mutable_graph_def());
  const int saved_nodes = model.graph_def().node_size();
  RewrittenSignatures rewritten;
  if (chooser != nullptr) rewritten = Rewritten(options, *chooser, &model);
  std::unique_ptr<Session> session;
  status = LoadMetagraphIntoSession(session_options, model, &session);
  if (!status.ok() && !rewritten.empty()) {
    std::string problem = absl::StrCat("its graphs are not optimized: ", status.message());
    auto* const nodes = model.mutable_graph_def()->mutable_node();
    nodes->DeleteSubrange(saved_nodes, nodes->size() - saved_nodes);
    rewritten.clear();
    status = LoadMetagraphIntoSession(session_options, model, &session);
    if (status.ok()) notes_.push_back(std::move(problem));
  }
  if (!status.ok()) return status;
  model.clear_graph_def();
  status = RestoreSession({}, model, directory, &session);
  if (chooser != nullptr) chooser->Use(std::move(rewritten), session.get());
  bundle_ = std::make_unique<SavedModelBundleLite>(std::move(session),
                                                   std::move(*model.mutable_signature_def()));
  return status;
}

RewrittenSignatures TensorFlowModel::Rewritten(const Options& options,
                                               const SignatureChooser& chooser,
                                               tensorflow::MetaGraphDef* model) {
  std::vector<Rewrite> rewrites = ExactRewrites();
  if (options.graph_optimization == GraphOptimization::kFast) {
    tables_ = TablesInUse(*model, options.unserved_signatures);
    // Without time to prove them none of these may serve.
    if (options.graph_measuring_ms > 0) {
      for (Rewrite& one : FastRewrites(CpuFlags::OfThisMachine(), tables_.only_looked_up())) {
        rewrites.push_back(std::move(one));
      }
    }
  }
  // A rewritten graph may read a copy of a variable, and trials run it with made-up values.
  const auto want = [&](const std::string& name) {
    return impure_.count(name) > 0 ? WantedForms{false, ""} : chooser.Wants(name);
  };
  return AddRewrittenSignatures(rewrites, want, model);
}

}  // namespace colcast::engine
