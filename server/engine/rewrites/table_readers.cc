#include "server/engine/rewrites/table_readers.h"

#include <map>
#include <vector>

#include "absl/algorithm/container.h"
#include "server/engine/rewrites/lookup_op.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

std::string VariableName(const NodeDef& variable) {
  std::string name;
  TryGetNodeAttr(variable, "shared_name", &name);
  return name;
}

// Whether the node is a grouped lookup that reads the table at this input in int8.
bool ReadsInInt8(const NodeDef& node, int input) {
  std::vector<int32_t> tables;
  std::vector<tensorflow::DataType> columns;
  if (node.op() != GroupedLookupOpName() || !TryGetNodeAttr(node, "int8_tables", &tables) ||
      !GetNodeAttr(node, "columns_types", &columns).ok()) {
    return false;
  }
  return absl::c_linear_search(tables, input - static_cast<int>(columns.size()));
}

// Whether the variable has a name in the default container.
bool HasOwnName(const NodeDef& variable) {
  std::string container;
  TryGetNodeAttr(variable, "container", &container);
  return container.empty() && !VariableName(variable).empty();
}

}  // namespace

TablesRead ReadBy(const GraphDef& graph, const tensorflow::SignatureDef& declared) {
  const GraphView view(graph);
  TablesRead read;
  const auto follows = [&](const NodeDef& node, int input) {
    if (!ReadsInInt8(node, input)) return true;
    const NodeDef* const table = view.Find(node.input(input));
    if (table != nullptr) read.int8.insert(VariableName(*table));
    return false;
  };
  for (const NodeDef* const node : view.Ancestors(OutputsOf(declared), follows)) {
    if (node->op() == "VarHandleOp") read.float32.insert(VariableName(*node));
  }
  return read;
}

std::set<std::string> VariablesOf(const GraphDef& graph) {
  std::map<std::string, int> handles;
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) {
      // Any caller of the function may read it.
      if (node.op() == "VarHandleOp") handles[VariableName(node)] += 2;
    }
  }
  for (const NodeDef& node : graph.node()) {
    if (node.op() == "VarHandleOp") handles[VariableName(node)] += HasOwnName(node) ? 1 : 2;
  }
  std::set<std::string> variables;
  for (const auto& [name, count] : handles) {
    if (count == 1) variables.insert(name);
  }
  return variables;
}

}  // namespace colcast::engine
