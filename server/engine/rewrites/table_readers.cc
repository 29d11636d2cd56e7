#include "server/engine/rewrites/table_readers.h"

#include <map>
#include <string_view>

#include "absl/strings/match.h"
#include "server/engine/rewrites/lookup_op.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::SignatureDef;

constexpr int64_t kLeastBytes = 1 << 20;

std::string NameOf(const NodeDef& variable) {
  std::string name;
  TryGetNodeAttr(variable, "shared_name", &name);
  return name;
}

// The positions, among a grouped lookup's inputs, of tables that it reads in rounded form.
std::set<int> Rounded(const NodeDef& node) {
  std::vector<int32_t> tables;
  std::vector<tensorflow::DataType> columns;
  if (node.op() != GroupedLookupOpName() || !TryGetNodeAttr(node, "rounded", &tables) ||
      !GetNodeAttr(node, "columns_types", &columns).ok()) {
    return {};
  }
  std::set<int> positions;
  for (const int32_t table : tables) positions.insert(static_cast<int>(columns.size()) + table);
  return positions;
}

// Finds the nodes on which a signature's outputs depend, and the variables that are read in rounded
// form.
class Walk {
 public:
  Walk(const GraphDef& graph, const SignatureDef& declared) {
    std::map<std::string, const NodeDef*> by_name;
    for (const NodeDef& node : graph.node()) by_name[node.name()] = &node;
    std::vector<std::string> open = OutputsOf(declared);
    while (!open.empty()) {
      const auto found = by_name.find(NodeOf(open.back()));
      open.pop_back();
      if (found == by_name.end() || !needed.insert(found->second).second) continue;
      const NodeDef& node = *found->second;
      const std::set<int> rounded_inputs = Rounded(node);
      for (int i = 0; i < node.input_size(); ++i) {
        if (rounded_inputs.count(i) == 0) {
          open.push_back(node.input(i));
        } else if (const auto table = by_name.find(NodeOf(node.input(i))); table != by_name.end()) {
          rounded[table->second] = node.attr().at("row_type").type();
        }
      }
    }
  }

  std::set<const NodeDef*> needed;
  std::map<const NodeDef*, tensorflow::DataType> rounded;
};

// Whether the variable has a name in the default container.
bool HasOwnName(const NodeDef& variable) {
  std::string container;
  TryGetNodeAttr(variable, "container", &container);
  return container.empty() && !NameOf(variable).empty();
}

bool IsBigMatrix(const NodeDef& variable) {
  tensorflow::DataType type;
  tensorflow::PartialTensorShape shape;
  return GetNodeAttr(variable, "dtype", &type).ok() && type == tensorflow::DT_FLOAT &&
         GetNodeAttr(variable, "shape", &shape).ok() && shape.dims() == 2 &&
         shape.IsFullyDefined() &&
         shape.num_elements() * static_cast<int64_t>(sizeof(float)) >= kLeastBytes;
}

// Whether all readers of a node's output, among the needed nodes, look rows up in it.
bool IsOnlyLookedUp(const NodeDef& table, const std::set<const NodeDef*>& needed) {
  for (const NodeDef* const reader : needed) {
    for (int i = 0; i < reader->input_size(); ++i) {
      if (NodeOf(reader->input(i)) != table.name()) continue;
      const std::string& op = reader->op();
      // A control edge reads nothing.
      if (absl::StartsWith(reader->input(i), "^")) continue;
      if (i != 0) return false;
      if (op == "ResourceGather" || op == "GatherV2" || op == "Gather") continue;
      if (op != "ReadVariableOp" && op != "Identity") return false;
      if (!IsOnlyLookedUp(*reader, needed)) return false;
    }
  }
  return true;
}

}  // namespace

TablesRead ReadBy(const GraphDef& graph, const SignatureDef& declared) {
  const Walk walk(graph, declared);
  TablesRead read;
  for (const NodeDef* const node : walk.needed) {
    if (node->op() == "VarHandleOp") read.float32.insert(NameOf(*node));
  }
  for (const auto& [node, type] : walk.rounded) read.rounded[NameOf(*node)] = type;
  return read;
}

std::set<std::string> VariablesOf(const GraphDef& graph) {
  std::map<std::string, int> handles;
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) {
      // Any caller of the function may read it.
      if (node.op() == "VarHandleOp") handles[NameOf(node)] += 2;
    }
  }
  for (const NodeDef& node : graph.node()) {
    if (node.op() == "VarHandleOp") handles[NameOf(node)] += HasOwnName(node) ? 1 : 2;
  }
  std::set<std::string> variables;
  for (const auto& [name, count] : handles) {
    if (count == 1) variables.insert(name);
  }
  return variables;
}

std::set<std::string> TablesOnlyLookedUp(const GraphDef& graph,
                                         const std::vector<SignatureDef>& signatures) {
  const std::set<std::string> variables = VariablesOf(graph);
  std::set<std::string> tables, others;
  for (const SignatureDef& declared : signatures) {
    const Walk walk(graph, declared);
    for (const NodeDef* const node : walk.needed) {
      if (node->op() != "VarHandleOp") continue;
      const bool may_be = IsBigMatrix(*node) && variables.count(NameOf(*node)) > 0 &&
                          IsOnlyLookedUp(*node, walk.needed);
      (may_be ? tables : others).insert(NameOf(*node));
    }
  }
  for (const std::string& name : others) tables.erase(name);
  return tables;
}

}  // namespace colcast::engine
