#include "server/engine/model_sessions.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/mapping/mapped_tables.h"
#include "tensorflow/cc/saved_model/constants.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/cc/saved_model/loader_util.h"
#include "tensorflow/core/common_runtime/direct_session.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace colcast::engine {

namespace {

using tensorflow::MetaGraphDef;
using tensorflow::SessionOptions;

SessionOptions MakeSessionOptions(const Options& options, Executor executor) {
  SessionOptions session_options;
  session_options.config.ParseFromString(options.session_config);
  if (executor == Executor::kSingleThreaded) {
    session_options.config.mutable_experimental()->set_executor_type("SINGLE_THREADED_EXECUTOR");
  }
  session_options.config.set_intra_op_parallelism_threads(options.intra_op_parallelism);
  // Even if operations run inline, asynchronous ones need a thread of the pool.
  session_options.config.set_inter_op_parallelism_threads(
      options.inter_op_parallelism == 0 ? 1 : options.inter_op_parallelism);
  auto* const rewriting = session_options.config.mutable_graph_options()->mutable_rewrite_options();
  // By default TensorFlow optimizes only graphs of 4 nodes or more. The whole model has more, so
  // its results come from an optimized graph, and a small signature must give the same bits.
  rewriting->set_min_graph_nodes(-1);
  // Turns off two optimizations that take a third of the load time and have no effect here: one
  // swaps tensors out of a GPU's memory, the other sinks functional control flow.
  rewriting->set_memory_optimization(tensorflow::RewriterConfig::NO_MEM_OPT);
  rewriting->set_disable_tfg_optimizer(true);
  // The session keeps only the graph that it runs.
  auto* const experimental = session_options.config.mutable_experimental();
  experimental->set_optimize_for_static_graph(true);
  experimental->set_disable_output_partition_graphs(true);
  return session_options;
}

// Returns FAILED_PRECONDITION if variables would be restored from a checkpoint without an index,
// which is probably still being copied: TensorFlow would load the model without complaint, and
// every request would fail. Variables that only the model's init op fills need no checkpoint.
absl::Status CheckCheckpoint(const std::string& directory, const MetaGraphDef& saved) {
  const bool has_variable = absl::c_any_of(saved.graph_def().node(), [](const auto& node) {
    return node.op() == "VarHandleOp" || node.op() == "VariableV2" || node.op() == "Variable";
  });
  const std::string index = absl::StrCat(directory, "/", tensorflow::kSavedModelVariablesDirectory,
                                         "/", tensorflow::kSavedModelVariablesFilename, ".index");
  if (saved.saver_def().restore_op_name().empty() || !has_variable ||
      tensorflow::Env::Default()->FileExists(index).ok()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("the graph has variables but there is no ",
                                                    index, ": is it still being copied?"));
}

// The nodes that restore and initialize variables.
absl::StatusOr<std::vector<std::string>> RestoringNodes(const std::string& directory,
                                                        const MetaGraphDef& saved) {
  std::vector<std::string> names = {saved.saver_def().restore_op_name(),
                                    saved.saver_def().filename_tensor_name(), ""};
  std::vector<tensorflow::AssetFileDef> assets;
  absl::Status status = tensorflow::internal::GetInitOp(directory, saved, &names.back());
  if (status.ok()) status = tensorflow::internal::GetAssetFileDefs(saved, &assets);
  if (!status.ok()) return status;
  for (const auto& asset : assets) names.push_back(asset.tensor_info().name());
  names.erase(std::remove(names.begin(), names.end(), ""), names.end());
  return names;
}

// Whether an op finds its state by a name in the graph, or only calls functions. Stateful ops
// inside a function have separate state in each callable anyway.
bool SharesStateByName(const tensorflow::NodeDef& node) {
  static constexpr std::string_view kOps[] = {"Assert",
                                              "AssignAddVariableOp",
                                              "AssignSubVariableOp",
                                              "AssignVariableOp",
                                              "If",
                                              "LookupTableFind",
                                              "LookupTableFindV2",
                                              "LookupTableSizeV2",
                                              "Placeholder",
                                              "ReadVariableOp",
                                              "ResourceGather",
                                              "ResourceGatherNd",
                                              "ResourceScatterAdd",
                                              "ResourceScatterUpdate",
                                              "StatefulPartitionedCall",
                                              "VarHandleOp",
                                              "VarIsInitializedOp",
                                              "Variable",
                                              "VariableShape",
                                              "VariableV2",
                                              "While"};
  if (absl::StartsWith(node.op(), "HashTable")) {
    std::string name;
    return TryGetNodeAttr(node, "shared_name", &name) && !name.empty();
  }
  return std::find(std::begin(kOps), std::end(kOps), node.op()) != std::end(kOps);
}

}  // namespace

absl::StatusOr<std::string> SessionStateIn(const tensorflow::GraphDef& graph) {
  const tensorflow::FunctionLibraryDefinition ops(tensorflow::OpRegistry::Global(),
                                                  graph.library());
  std::string found;
  for (const tensorflow::NodeDef& node : graph.node()) {
    const tensorflow::OpDef* op = nullptr;
    absl::Status status = ops.LookUpOpDef(node.op(), &op);
    if (!status.ok()) return status;
    if (found.empty() && op->is_stateful() && !SharesStateByName(node)) {
      found = absl::StrCat(node.op(), " ", node.name());
    }
  }
  return found;
}

absl::StatusOr<std::unique_ptr<ModelSessions>> ModelSessions::Restore(const std::string& directory,
                                                                      const MetaGraphDef& saved,
                                                                      const NeededGraphs& graphs,
                                                                      const Options& options,
                                                                      bool shared, bool maps) {
  absl::Status status = CheckCheckpoint(directory, saved);
  if (!status.ok()) return status;
  std::unique_ptr<ModelSessions> made(new ModelSessions(options, shared));
  SessionOptions session_options = MakeSessionOptions(options, Executor::kDefault);
  MetaGraphDef restoring;
  const MetaGraphDef* loaded = &saved;
  if (!shared) {
    const auto nodes = RestoringNodes(directory, saved);
    if (!nodes.ok()) return nodes.status();
    auto graph = graphs.Of(*nodes);
    if (!graph.ok()) return graph.status();
    if (maps) MapRestored(options.map_tables_min_bytes, &*graph);
    *restoring.mutable_graph_def() = *std::move(graph);
    *restoring.mutable_saver_def() = saved.saver_def();
    *restoring.mutable_collection_def() = saved.collection_def();
    *restoring.mutable_asset_file_def() = saved.asset_file_def();
    *restoring.mutable_signature_def() = saved.signature_def();
    loaded = &restoring;
    // This graph runs only once, so optimizing it does not pay.
    session_options.config.mutable_graph_options()
        ->mutable_rewrite_options()
        ->set_disable_meta_optimizer(true);
  }
  status = LoadMetagraphIntoSession(session_options, *loaded, &made->restored_);
  if (status.ok()) status = RestoreSession({}, *loaded, directory, &made->restored_);
  if (!status.ok()) return status;
  return made;
}

bool HasConditions(const tensorflow::GraphDef& graph) {
  const auto is_lowered = [](const tensorflow::NodeDef& node) {
    const auto found = node.attr().find("_lower_using_switch_merge");
    return found != node.attr().end() && found->second.b();
  };
  const auto& functions = graph.library().function();
  return absl::c_any_of(graph.node(), is_lowered) ||
         absl::c_any_of(functions, [&](const tensorflow::FunctionDef& function) {
           return absl::c_any_of(function.node_def(), is_lowered);
         });
}

absl::StatusOr<tensorflow::Session*> ModelSessions::Add(const tensorflow::GraphDef& graph,
                                                        Executor executor) {
  if (shared_) return restored_.get();
  if (HasConditions(graph)) executor = Executor::kDefault;
  const tensorflow::DeviceMgr* devices = nullptr;
  absl::Status status = restored_->LocalDeviceManager(&devices);
  if (!status.ok()) return status;
  auto session = std::make_unique<tensorflow::DirectSession>(
      MakeSessionOptions(options_, executor), new SharedDevices(*devices), /*factory=*/nullptr);
  tensorflow::Session* const made = session.get();
  {
    // Keeps the session even after an error, because destroying it would clear the shared devices.
    const std::lock_guard<std::mutex> lock(mutex_);
    added_.push_back(std::move(session));
  }
  status = made->Create(graph);
  if (!status.ok()) return status;
  return made;
}

}  // namespace colcast::engine
