// Finds the graphs of a SavedModel's signatures and rewrites them.
#include <fstream>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/engine/mapping/int8_files.h"
#include "server/engine/model.h"
#include "server/engine/rewrites/rewrite_choices.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/status.h"
#include "tensorflow/c/c_api.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;

// The name of the first processor, for example "AMD EPYC 9B45".
std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::pair<std::string_view, std::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(entry.first) != "model name") continue;
    return std::string(absl::StripAsciiWhitespace(entry.second));
  }
  return "";
}

// Everything on which a choice depends: the versions of colcast and TensorFlow, the CPU, and the
// graphs of the model's signatures. Weights do not count, so the model's next version has the same
// key.
std::string GraphKey(const MetaGraphDef& model, const SignatureGraphs& graphs) {
  return absl::StrCat("colcast " COLCAST_VERSION ", TensorFlow ", TF_Version(), ", ", CpuModel(),
                      ", graph ", GraphFingerprint(model, graphs));
}

// Applies the exact rewrites to all signatures, and the choice's rewrites to the signatures that it
// names.
absl::StatusOr<RewrittenSignatures> RewriteAll(const MetaGraphDef& saved,
                                               const SignatureGraphs& graphs,
                                               const Impurities& impure, const ChoiceFile& choice,
                                               const std::vector<Rewrite>& fast) {
  RewrittenSignatures rewritten;
  for (const auto& [name, graph] : graphs) {
    // An impure signature's variables may change, and a rewrite may read a copy of them.
    if (impure.count(name) > 0) continue;
    std::vector<Rewrite> rewrites = ExactRewrites();
    if (choice.signatures.count(name) > 0) {
      for (const Rewrite& one : fast) {
        if (choice.rewrites.count(std::string(one.name)) > 0) rewrites.push_back(one);
      }
    }
    GraphDef changed = graph;
    absl::StatusOr<std::string> says =
        RewriteGraph(rewrites, saved.signature_def().at(name), &changed);
    if (!says.ok()) {
      return absl::Status(says.status().code(),
                          absl::StrCat("signature \"", name, "\": ", says.status().message()));
    }
    if (!says->empty()) rewritten[name] = {*std::move(says), std::move(changed)};
  }
  return rewritten;
}

}  // namespace

SignatureGraphs TensorFlowModel::GraphsToServe(const NeededGraphs& needed) {
  SignatureGraphs graphs;
  for (const auto& [name, signature] : saved_signatures_) {
    if (absl::c_linear_search(options_.unserved_signatures, name)) {
      served_[name].status = absl::FailedPreconditionError(absl::StrCat(
          "signature \"", name, "\" is not served here: it is among --unserved_signatures"));
      continue;
    }
    absl::StatusOr<GraphDef> graph = needed.Of(TensorsOf(signature));
    if (graph.ok()) {
      graphs[name] = *std::move(graph);
    } else {
      served_[name].status = graph.status();
    }
  }
  return graphs;
}

absl::StatusOr<RewrittenSignatures> TensorFlowModel::RewrittenBy(const ChoiceFile& choice,
                                                                 const MetaGraphDef& saved,
                                                                 const SignatureGraphs& graphs) {
  if (choice.rewrites.count(kInt8Tables) > 0) {
    absl::StatusOr<Int8Files> mapped = absl::FailedPreconditionError("--map_tables is off");
    if (options_.map_tables) {
      mapped = MapInt8Tables(directory_, VariablesOf(saved.graph_def()), sessions_->restored());
    }
    if (mapped.ok()) int8_tables_ = std::move(mapped->tables);
    description_.notes.push_back(
        mapped.ok() ? std::move(mapped->note)
                    : absl::StrCat("tables stay in float32: ", mapped.status().message()));
  }
  return RewriteAll(saved, graphs, impure_, choice, FastRewrites(int8_tables_));
}

RewrittenSignatures TensorFlowModel::Rewritten(const MetaGraphDef& saved,
                                               const SignatureGraphs& graphs) {
  if (options_.graph_optimization == GraphOptimization::kOff || sessions_->shared()) return {};
  if (options_.graph_optimization == GraphOptimization::kFast) {
    const std::string key = GraphKey(saved, graphs);
    ChoiceFile choice;
    const Status found = FindChoice(options_.graph_choices, key, &choice);
    absl::StatusOr<RewrittenSignatures> rewritten =
        found.ok() ? RewrittenBy(choice, saved, graphs) : ToAbsl(found);
    if (rewritten.ok()) {
      description_.notes.push_back(absl::StrCat("graph choice applied: ", choice.path));
      return *std::move(rewritten);
    }
    description_.notes.push_back(
        absl::StrCat("no graph choice applied, graphs are exact: ", rewritten.status().message(),
                     "; this is \"", key, "\""));
  }
  return RewriteAll(saved, graphs, impure_, {}, {}).value();
}

}  // namespace colcast::engine
