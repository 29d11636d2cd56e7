#include "server/engine/rewrites/impure_signatures.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"

namespace colcast::engine {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using tensorflow::OpDef;

// Keep in step with the lists in export/graph/_impure.py.
constexpr std::string_view kHandles[] = {"HashTable",
                                         "HashTableV2",
                                         "MutableDenseHashTable",
                                         "MutableHashTable",
                                         "MutableHashTableV2",
                                         "MutableDenseHashTableV2",
                                         "VarHandleOp",
                                         "Variable",
                                         "MutableHashTableOfTensors",
                                         "VariableV2",
                                         "MutableHashTableOfTensorsV2"};

// Ops that are registered as stateful or read state, but change nothing, and whose results depend
// only on what they read. The state of TensorArrays and stacks lasts for one run only.
constexpr std::string_view kHarmless[] = {"Assert",
                                          "BoostedTreesEnsembleResourceHandleOp",
                                          "BoostedTreesPredict",
                                          "Case",
                                          "CheckNumerics",
                                          "CheckNumericsV2",
                                          "DeepCopy",
                                          "Empty",
                                          "GuaranteeConst",
                                          "If",
                                          "IsVariableInitialized",
                                          "LookupTableExport",
                                          "LookupTableExportV2",
                                          "LookupTableFind",
                                          "LookupTableFindV2",
                                          "LookupTableSize",
                                          "LookupTableSizeV2",
                                          "Print",
                                          "PrintV2",
                                          "ReadVariableOp",
                                          "RefEnter",
                                          "RefExit",
                                          "RefIdentity",
                                          "RefMerge",
                                          "RefNextIteration",
                                          "RefSelect",
                                          "RefSwitch",
                                          "ResourceGather",
                                          "ResourceGatherNd",
                                          "StatefulPartitionedCall",
                                          "StatelessRandomGetAlg",
                                          "VarIsInitializedOp",
                                          "VariableShape",
                                          "While",
                                          "XlaCallModule"};
constexpr std::string_view kHarmlessPrefixes[] = {"Sentencepiece", "SimpleML", "Stack",
                                                  "TensorArray"};
// TensorFlow registers these ops as stateless, but files may change.
constexpr std::string_view kReadFiles[] = {"MatchingFiles", "ReadFile"};

constexpr std::string_view kPassOn[] = {
    "Enter",    "Exit",        "Identity",  "Merge",  "RefEnter",      "RefExit",
    "RefMerge", "RefIdentity", "RefSwitch", "Switch", "NextIteration", "RefNextIteration"};
constexpr std::string_view kAnyResource = "*";

bool IsAmong(std::string_view op, absl::Span<const std::string_view> ops) {
  return absl::c_linear_search(ops, op);
}

bool IsHarmless(std::string_view op) {
  return IsAmong(op, kHarmless) || absl::c_any_of(kHarmlessPrefixes, [&](auto prefix) {
           return absl::StartsWith(op, prefix);
         });
}

bool TakesHandle(const OpDef& op) {
  return absl::c_any_of(op.input_arg(), [](const OpDef::ArgDef& input) {
    return input.is_ref() || input.type() == tensorflow::DT_RESOURCE;
  });
}

std::string ResourceOf(const NodeDef& handle) {
  std::string container, name;
  TryGetNodeAttr(handle, "container", &container);
  TryGetNodeAttr(handle, "shared_name", &name);
  if (name.empty()) name = handle.name();
  return container.empty() ? name : absl::StrCat(container, "/", name);
}

// The main graph, or the body of a function.
struct Scope {
  explicit Scope(const GraphView::Nodes& all) : nodes(all) {}
  GraphView nodes;
  // The resource that each argument of a function refers to; "" for values.
  std::map<std::string, std::string> arguments;
};

struct Graph {
  explicit Graph(const tensorflow::GraphDef& graph) : all(graph.node()), main(graph.node()) {
    for (const FunctionDef& function : graph.library().function()) {
      library[function.signature().name()] = &function;
    }
  }

  std::vector<const FunctionDef*> CalledBy(const NodeDef& node) const {
    std::vector<const FunctionDef*> called;
    const auto add = [&](const std::string& name) {
      if (const auto found = library.find(name); found != library.end()) {
        called.push_back(found->second);
      }
    };
    add(node.op());
    for (const auto& [key, value] : node.attr()) {
      if (value.has_func()) add(value.func().name());
      for (const auto& function : value.list().func()) add(function.name());
    }
    return called;
  }

  const GraphView::Nodes& all;
  const Scope main;
  absl::flat_hash_map<std::string_view, const FunctionDef*> library;
};

// Collects what a signature's run reads and writes, and one node that differs between runs.
class Reached {
 public:
  explicit Reached(const Graph& graph) : graph_(graph) {}

  void Visit(const tensorflow::SignatureDef& signature) {
    const std::set<const NodeDef*> needed = graph_.main.nodes.Ancestors(OutputsOf(signature));
    for (const NodeDef& node : graph_.all) {
      if (needed.count(&node) > 0) VisitNode(graph_.main, node);
    }
  }

  std::set<std::string> read;                  // resources
  std::map<std::string, std::string> written;  // resource -> op
  // A node whose result or effect differs between runs, with its op; empty if there is none.
  std::string effect;

 private:
  void VisitNode(const Scope& scope, const NodeDef& node) {
    if (IsAmong(node.op(), kHandles)) {
      read.insert(ResourceOf(node));
      return;
    }
    bool calls = false;
    for (const FunctionDef* const function : graph_.CalledBy(node)) {
      calls |= function->signature().name() == node.op();
      VisitBody(scope, node, *function);
    }
    const OpDef* op = nullptr;
    if (calls || IsHarmless(node.op())) return;
    const bool known = tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok();
    if (known && !op->is_stateful() && !TakesHandle(*op) && !IsAmong(node.op(), kReadFiles)) return;
    if (effect.empty()) effect = absl::StrCat(node.name(), " (", node.op(), ")");
    NoteWritten(scope, node, !known || TakesHandle(*op));
  }

  void NoteWritten(const Scope& scope, const NodeDef& node, bool takes_handle) {
    bool found = false;
    for (const std::string& input : node.input()) {
      const std::string resource = ResourceAt(scope, input);
      if (resource.empty()) continue;
      written.emplace(resource, node.op());
      found = true;
    }
    if (takes_handle && !found) written.emplace(kAnyResource, node.op());
  }

  // The resource that an input refers to; "" if unknown.
  static std::string ResourceAt(const Scope& scope, std::string input) {
    std::set<const NodeDef*> passed;
    while (!absl::StartsWith(input, "^")) {
      const auto argument = scope.arguments.find(NodeOf(input));
      if (argument != scope.arguments.end()) return argument->second;
      const NodeDef* const node = scope.nodes.Find(input);
      if (node == nullptr) return "";
      if (IsAmong(node->op(), kHandles)) return ResourceOf(*node);
      const bool passes_on = IsAmong(node->op(), kPassOn) && !node->input().empty();
      if (!passes_on || !passed.insert(node).second) return "";
      input = node->input(0);
    }
    return "";
  }

  void VisitBody(const Scope& caller, const NodeDef& call, const FunctionDef& function) {
    Scope body(function.node_def());
    std::string key = function.signature().name();
    const std::vector<std::string> resources = Arguments(caller, call, function);
    for (int i = 0; i < function.signature().input_arg_size(); ++i) {
      body.arguments[function.signature().input_arg(i).name()] = resources[i];
      absl::StrAppend(&key, "\n", resources[i]);
    }
    if (!bodies_.insert(std::move(key)).second) return;
    for (const NodeDef& node : function.node_def()) VisitNode(body, node);
  }

  // The resource that each argument of a function refers to; kAnyResource if it is unknown which
  // inputs the op passes.
  static std::vector<std::string> Arguments(const Scope& caller, const NodeDef& call,
                                            const FunctionDef& function) {
    constexpr std::string_view kByCondition[] = {"Case", "If", "StatelessCase", "StatelessIf"};
    constexpr std::string_view kByPosition[] = {"PartitionedCall", "StatefulPartitionedCall",
                                                "StatelessWhile", "While"};
    const int count = function.signature().input_arg_size();
    const int first = IsAmong(call.op(), kByCondition) ? 1 : 0;
    const bool by_position =
        first == 1 || IsAmong(call.op(), kByPosition) || call.op() == function.signature().name();
    if (!by_position || call.input_size() < first + count) {
      return std::vector<std::string>(count, std::string(kAnyResource));
    }
    std::vector<std::string> resources;
    for (int i = 0; i < count; ++i) resources.push_back(ResourceAt(caller, call.input(first + i)));
    return resources;
  }

  const Graph& graph_;
  std::set<std::string> bodies_;  // functions already visited, with their arguments' resources
};

// A resource that `writer` writes and `reader` reads, if there is one.
std::optional<std::string> WrittenBy(const Reached& writer, const Reached& reader) {
  const bool any = writer.written.count(std::string(kAnyResource)) > 0;
  for (const std::string& resource : reader.read) {
    if (any || writer.written.count(resource) > 0) return resource;
  }
  return std::nullopt;
}

}  // namespace

Impurities FindImpure(const tensorflow::MetaGraphDef& model,
                      const std::vector<std::string>& unserved) {
  const Graph graph(model.graph_def());
  std::map<std::string, Reached> served;
  for (const auto& [name, signature] : model.signature_def()) {
    if (absl::StartsWith(name, "__") || absl::c_linear_search(unserved, name)) continue;
    served.emplace(name, graph).first->second.Visit(signature);
  }
  Impurities impure;
  for (const auto& [name, reached] : served) {
    if (!reached.written.empty()) {
      const auto& [resource, op] = *reached.written.begin();
      impure[name] = {absl::StrCat("it writes \"", resource, "\" (", op, ")"), true};
    } else if (!reached.effect.empty()) {
      impure[name] = {absl::StrCat(reached.effect, " differs between runs"), false};
    }
    if (impure.count(name) > 0) continue;
    for (const auto& [writer, other] : served) {
      const std::optional<std::string> resource = WrittenBy(other, reached);
      if (!resource.has_value()) continue;
      impure[name] = {
          absl::StrCat("it reads \"", *resource, "\", which signature \"", writer, "\" writes"),
          false};
      break;
    }
  }
  return impure;
}

}  // namespace colcast::engine
