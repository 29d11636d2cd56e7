#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/engine/rewrites/lookup_chain.h"
#include "server/engine/rewrites/lookup_op.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewrites.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

bool WaitsForAnother(const NodeDef& node) {
  return std::any_of(node.input().begin(), node.input().end(),
                     [](const std::string& input) { return absl::StartsWith(input, "^"); });
}

// The variable that `tensor` is the value or the handle of. Returns null if there is none, or if
// something that may fail, such as an Assert, must run before the variable is read.
const NodeDef* VariableOf(const GraphView& view, const std::set<std::string>& feeds,
                          std::string_view tensor) {
  while (true) {
    const NodeDef* const node = view.Find(tensor);
    if (node == nullptr || feeds.count(node->name()) > 0) return nullptr;
    if (node->op() == "VarHandleOp") return node;
    const bool passes = node->op() == "ReadVariableOp" || node->op() == "Identity";
    if (!passes || node->input_size() == 0 || WaitsForAnother(*node)) return nullptr;
    tensor = node->input(0);
  }
}

// Whether all features that read the table could read it in int8.
bool CanBeRead(const std::vector<std::string>& chains, const std::vector<int32_t>& tables,
               int table) {
  for (size_t i = 0; i < chains.size(); ++i) {
    if (tables[i] != table) continue;
    const absl::StatusOr<LookupChain> chain = LookupChain::Parse(chains[i]);
    if (!chain.ok() || chain->Hides() ||
        (chain->result != LookupChain::Result::kGather &&
         chain->result != LookupChain::Result::kSum)) {
      return false;
    }
  }
  return true;
}

// Changes one grouped lookup; adds to `changed` each variable that it now reads in int8, with the
// lookup's name.
absl::Status UseIn(const GraphView& view, const std::set<std::string>& variables,
                   const std::set<std::string>& feeds, NodeDef* node,
                   std::map<std::string, std::string>* changed) {
  std::vector<std::string> chains;
  std::vector<int32_t> tables, in_int8;
  std::vector<DataType> columns, types;
  DataType type;
  for (const absl::Status& status :
       {GetNodeAttr(*node, "chains", &chains), GetNodeAttr(*node, "table", &tables),
        GetNodeAttr(*node, "columns_types", &columns), GetNodeAttr(*node, "tables_types", &types),
        GetNodeAttr(*node, "T", &type)}) {
    if (!status.ok()) return status;
  }
  if (type != tensorflow::DT_FLOAT) return absl::OkStatus();
  for (size_t i = 0; i < types.size(); ++i) {
    std::string* const input = node->mutable_input(static_cast<int>(columns.size() + i));
    const NodeDef* const variable = VariableOf(view, feeds, *input);
    std::string name;
    if (variable == nullptr || !TryGetNodeAttr(*variable, "shared_name", &name) ||
        variables.count(name) == 0 || !CanBeRead(chains, tables, static_cast<int>(i))) {
      continue;
    }
    *input = variable->name();
    types[i] = tensorflow::DT_RESOURCE;
    in_int8.push_back(static_cast<int32_t>(i));
    changed->emplace(variable->name(), node->name());
  }
  for (const char* const attribute : {"tables_types", "int8_tables"}) {
    node->mutable_attr()->erase(attribute);
  }
  tensorflow::AddNodeAttr("tables_types", types, node);
  tensorflow::AddNodeAttr("int8_tables", in_int8, node);
  return absl::OkStatus();
}

// Moves control edges from reads of float32 tables to the lookup, so that those reads need not run.
// `lookups` maps a variable to its lookup.
void MoveWaits(const GraphView& view, const std::set<std::string>& feeds,
               const std::map<std::string, std::string>& lookups, GraphDef* graph) {
  std::vector<std::string> all;
  for (const auto& [variable, lookup] : lookups) all.push_back(lookup);
  const std::set<const NodeDef*> needed = view.Ancestors(std::move(all));
  for (NodeDef& node : *graph->mutable_node()) {
    if (needed.count(view.Find(node.name())) > 0) continue;
    for (std::string& input : *node.mutable_input()) {
      std::string_view name = input;
      if (!absl::ConsumePrefix(&name, "^")) continue;
      const NodeDef* const variable = VariableOf(view, feeds, name);
      if (variable == nullptr || variable->name() == name) continue;
      const auto found = lookups.find(variable->name());
      if (found != lookups.end()) input = absl::StrCat("^", found->second);
    }
  }
}

}  // namespace

absl::StatusOr<int> UseInt8Tables(const std::set<std::string>& variables,
                                  const std::set<std::string>& feeds, GraphDef* graph) {
  if (variables.empty()) return 0;
  const GraphDef before = *graph;
  const GraphView view(before);
  std::map<std::string, std::string> changed;  // variable -> lookup
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.op() != GroupedLookupOpName()) continue;
    absl::Status status = UseIn(view, variables, feeds, &node, &changed);
    if (!status.ok()) {
      *graph = before;
      return status;
    }
  }
  MoveWaits(view, feeds, changed, graph);
  return static_cast<int>(changed.size());
}

}  // namespace colcast::engine
