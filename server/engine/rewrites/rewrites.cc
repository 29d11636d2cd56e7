#include "server/engine/rewrites/rewrites.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tsl/platform/fingerprint.h"

namespace colcast::engine {

std::vector<Rewrite> ExactRewrites() {
  return {{"kernel rows", " kernels' rows gathered once", GatherKernelRowsOnce},
          {"vocabulary lookups", " vocabularies looked up as a list", ReplaceVocabularyLookups},
          {"grouped lookups", " lookups run as one op", GroupLookups}};
}

std::vector<Rewrite> FastRewrites(const std::set<std::string>& int8_tables) {
  const auto in_int8 = [int8_tables](const std::set<std::string>& feeds,
                                     tensorflow::GraphDef* graph) {
    return UseInt8Tables(int8_tables, feeds, graph);
  };
  std::vector<Rewrite> rewrites = {{kInt8Tables, " tables in int8", in_int8}};
  if (HasBfloat16Products()) {
    rewrites.push_back({"bfloat16 products", " products in bfloat16", UseBfloat16Products});
  }
  return rewrites;
}

namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::SignatureDef;

// Loops run in frames of their own, which rewrites do not support.
constexpr std::string_view kLoops[] = {"Enter", "Exit", "Switch", "Merge", "NextIteration"};

// Stateful ops that only read.
constexpr std::string_view kReaders[] = {"Assert",          "HashTable",         "HashTableV2",
                                         "LookupTableFind", "LookupTableFindV2", "Placeholder",
                                         "ReadVariableOp",  "ResourceGather",    "ResourceGatherNd",
                                         "VarHandleOp",     "Variable",          "VariableV2"};

// Whether the node may change state. A graph with such a node is not rewritten.
bool MayChangeSomething(const NodeDef& node) {
  const tensorflow::OpDef* op = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok()) return true;
  const bool is_reader =
      std::find(std::begin(kReaders), std::end(kReaders), node.op()) != std::end(kReaders);
  return op->is_stateful() && !is_reader;
}

bool CanBeRewritten(const GraphDef& graph) {
  for (const NodeDef& node : graph.node()) {
    if (MayChangeSomething(node)) return false;
    for (const std::string_view loop : kLoops) {
      if (absl::EndsWith(node.op(), loop)) return false;
    }
  }
  return true;
}

bool Rounds(const NodeDef& node) {
  const auto int8 = node.attr().find("int8_tables");
  return node.op() == Bfloat16ProductOpName() ||
         (int8 != node.attr().end() && int8->second.list().i_size() > 0);
}

// Refuses outputs that are neither float nor double but depend on rounded values, because they
// could change by more than a rounding error.
absl::Status CheckWhatIsRounded(const GraphDef& graph, const SignatureDef& declared) {
  const GraphView view(graph);
  std::vector<const NodeDef*> rounding;
  for (const NodeDef& node : graph.node()) {
    if (Rounds(node)) rounding.push_back(&node);
  }
  const std::set<const NodeDef*> rounded = view.Descendants(std::move(rounding));
  for (const auto& [alias, info] : declared.outputs()) {
    const bool is_close =
        info.dtype() == tensorflow::DT_FLOAT || info.dtype() == tensorflow::DT_DOUBLE;
    if (is_close || rounded.count(view.Find(info.name())) == 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("output \"", alias, "\" is of ", tensorflow::DataTypeString(info.dtype()),
                     ", which must not change, but depends on rounded values"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> RewriteGraph(const std::vector<Rewrite>& rewrites,
                                         const SignatureDef& declared, GraphDef* graph) {
  std::string says;
  if (!HasDenseOutputs(declared) || !CanBeRewritten(*graph)) return says;
  std::set<std::string> inputs;
  for (const auto& [alias, info] : declared.inputs()) inputs.insert(NodeOf(info.name()));
  for (const Rewrite& rewrite : rewrites) {
    const absl::StatusOr<int> places = rewrite.apply(inputs, graph);
    if (!places.ok() || *places == 0) continue;
    absl::StrAppend(&says, says.empty() ? "" : ", ", *places, rewrite.does);
  }
  if (absl::Status status = CheckWhatIsRounded(*graph, declared); !status.ok()) return status;
  return says;
}

std::string GraphFingerprint(const tensorflow::MetaGraphDef& model, const SignatureGraphs& graphs) {
  std::map<std::string, uint64_t> parts;  // hash by signature or node
  for (const auto& [name, graph] : graphs) {
    const SignatureDef& declared = model.signature_def().at(name);
    if (!HasDenseOutputs(declared) || !CanBeRewritten(graph)) continue;
    parts[absl::StrCat("signature ", name)] = tensorflow::DeterministicProtoHash64(declared);
    for (const NodeDef& node : graph.node()) {
      uint64_t& hash = parts[absl::StrCat("node ", node.name())];
      if (hash == 0) hash = tensorflow::DeterministicProtoHash64(node);
    }
  }
  std::string all;
  for (const auto& [part, hash] : parts) absl::StrAppend(&all, part, "=", hash, "\n");
  return absl::StrFormat("%016x", tsl::Fingerprint64(all));
}

}  // namespace colcast::engine
