#include "server/engine/rewrites/int8_lookups.h"

#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/lookup_chain.h"
#include "server/engine/rewrites/lookup_op.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using Nodes = std::map<std::string, const NodeDef*, std::less<>>;

// The variable that a tensor is the value or the handle of; null if it is none's.
const NodeDef* VariableOf(const Nodes& nodes, const std::set<std::string>& feeds,
                          std::string_view tensor) {
  while (true) {
    const auto found = nodes.find(tensor.substr(0, tensor.find(':')));
    if (found == nodes.end() || feeds.count(found->first) > 0) return nullptr;
    const NodeDef& node = *found->second;
    if (node.op() == "VarHandleOp") return &node;
    if ((node.op() != "ReadVariableOp" && node.op() != "Identity") || node.input_size() == 0) {
      return nullptr;
    }
    tensor = node.input(0);
  }
}

// Whether each feature that reads a table is what an int8 table can do.
bool CanBeRead(const std::vector<std::string>& chains, const std::vector<int32_t>& tables,
               int table) {
  for (size_t i = 0; i < chains.size(); ++i) {
    if (tables[i] != table) continue;
    const absl::StatusOr<LookupChain> chain = LookupChain::Parse(chains[i]);
    if (!chain.ok() || (chain->result != LookupChain::Result::kGather &&
                        chain->result != LookupChain::Result::kSum)) {
      return false;
    }
  }
  return true;
}

// Changes one grouped lookup; the tables that are read in int8 then are added to `changed`.
absl::Status UseIn(const Nodes& nodes, const std::set<std::string>& variables,
                   const std::set<std::string>& feeds, NodeDef* node,
                   std::set<std::string>* changed) {
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
    const NodeDef* const variable = VariableOf(nodes, feeds, *input);
    std::string name;
    if (variable == nullptr || !TryGetNodeAttr(*variable, "shared_name", &name) ||
        variables.count(name) == 0 || !CanBeRead(chains, tables, static_cast<int>(i))) {
      continue;
    }
    *input = variable->name();
    types[i] = tensorflow::DT_RESOURCE;
    in_int8.push_back(static_cast<int32_t>(i));
    changed->insert(name);
  }
  for (const char* const attribute : {"tables_types", "in_int8"}) {
    node->mutable_attr()->erase(attribute);
  }
  tensorflow::AddNodeAttr("tables_types", types, node);
  tensorflow::AddNodeAttr("in_int8", in_int8, node);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> UseInt8Tables(const std::set<std::string>& variables,
                                  const std::set<std::string>& feeds, GraphDef* graph) {
  if (variables.empty()) return 0;
  const GraphDef before = *graph;
  Nodes nodes;
  for (const NodeDef& node : before.node()) nodes[node.name()] = &node;
  std::set<std::string> changed;
  for (NodeDef& node : *graph->mutable_node()) {
    if (node.op() != GroupedLookupOpName()) continue;
    absl::Status status = UseIn(nodes, variables, feeds, &node, &changed);
    if (!status.ok()) {
      *graph = before;
      return status;
    }
  }
  return static_cast<int>(changed.size());
}

}  // namespace colcast::engine
