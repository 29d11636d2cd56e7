#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/feature_chain.h"
#include "server/engine/rewrites/lookup_chain.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/shaped_graph.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;

// A Concat with a single lookup is left to TensorFlow, which handles it well.
constexpr int kLeastLookups = 2;

struct Group {
  const Node* concat;
  std::vector<FeatureChain> features;
  int lookups = 0;
};

// The features of a Concat of matrices, in column order; empty if any is not recognized.
Group FindGroup(const ShapedGraph& graph, const Node* concat) {
  Group group{concat, {}};
  const int last = concat->num_inputs() - 1;
  const auto axis = graph.Integer(In(*concat, last));
  if (axis != 1 && axis != -1) return group;
  for (int i = 0; i < last; ++i) {
    auto feature = ReadFeatureChain(graph, In(*concat, i));
    if (!feature.has_value()) return {concat, {}};
    group.lookups += feature->table.node != nullptr ? 1 : 0;
    group.features.push_back(*std::move(feature));
  }
  return group;
}

std::vector<Group> FindGroups(const ShapedGraph& graph) {
  std::vector<Group> groups;
  for (const Node* node : graph.graph().op_nodes()) {
    if (!graph.Is(*node, "ConcatV2")) continue;
    Group group = FindGroup(graph, node);
    if (!group.features.empty() && group.lookups >= kLeastLookups) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

// The position of `output` among the distinct `outputs`; adds it if it is missing. -1 for a null
// output.
int PositionOf(Output output, std::vector<Output>* outputs) {
  if (output.node == nullptr) return -1;
  const auto is_same = [output](Output other) { return IsSame(other, output); };
  const auto found = std::find_if(outputs->begin(), outputs->end(), is_same);
  const auto position = static_cast<int>(found - outputs->begin());
  if (found == outputs->end()) outputs->push_back(output);
  return position;
}

NodeDef MakeNode(const ShapedGraph& graph, const Group& group) {
  NodeDef made;
  made.set_name(group.concat->name());
  made.set_op(GroupedLookupOpName());
  made.set_device(group.concat->requested_device());
  std::vector<std::string> chains, lookups;
  std::vector<tensorflow::PartialTensorShape> shapes;
  std::vector<int> positions, repeats;
  std::vector<Output> tables, rows;
  tensorflow::DataTypeVector column_types, table_types;
  std::vector<const Node*> replaced = {group.concat};
  for (const FeatureChain& feature : group.features) {
    made.add_input(NameOf(feature.column));
    column_types.push_back(feature.column.type());
    chains.push_back(feature.chain.Words());
    shapes.push_back(feature.shape);
    lookups.push_back(feature.lookup);
    positions.push_back(PositionOf(feature.table, &tables));
    repeats.push_back(PositionOf(feature.rows, &rows));
    replaced.insert(replaced.end(), feature.nodes.begin(), feature.nodes.end());
  }
  for (const Output table : tables) {
    made.add_input(NameOf(table));
    table_types.push_back(table.type());
  }
  for (const Output number : rows) made.add_input(NameOf(number));
  for (const std::string& wait : WaitsOf(replaced)) made.add_input(wait);
  tensorflow::AddNodeAttr("columns_types", column_types, &made);
  tensorflow::AddNodeAttr("tables_types", table_types, &made);
  tensorflow::AddNodeAttr("T", group.concat->output_type(0), &made);
  tensorflow::AddNodeAttr("chains", chains, &made);
  tensorflow::AddNodeAttr("table", positions, &made);
  tensorflow::AddNodeAttr("num_rows", static_cast<int64_t>(rows.size()), &made);
  tensorflow::AddNodeAttr("rows_of", repeats, &made);
  tensorflow::AddNodeAttr("shapes", shapes, &made);
  tensorflow::AddNodeAttr("lookups", lookups, &made);
  tensorflow::AddNodeAttr("joined_shape", graph.ShapeOf({group.concat, 0}), &made);
  return made;
}

// The groups' Concats, and all nodes on which they depend.
std::set<const Node*> Ancestors(const tensorflow::Graph& graph, const std::vector<Group>& groups) {
  std::set<const Node*> seen;
  std::vector<const Node*> concats;
  for (const Group& group : groups) concats.push_back(group.concat);
  tensorflow::ReverseDFSFrom(
      graph, concats, [&seen](const Node* node) { seen.insert(node); },
      /*leave=*/nullptr);
  return seen;
}

// Moves control edges from nodes that a group replaces to the group, so that those nodes need not
// run. (A control edge may exist for a node's errors.) Edges to nodes that the groups need stay,
// because moving them would create a cycle. Returns the argument of MoveWaits() for each waiting
// node.
std::map<std::string, std::map<std::string, std::string>> MovedWaits(
    const tensorflow::Graph& graph, const std::vector<Group>& groups) {
  std::map<std::string, std::map<std::string, std::string>> moved;
  const std::set<const Node*> needed = Ancestors(graph, groups);
  for (const Group& group : groups) {
    for (const FeatureChain& feature : group.features) {
      for (const Node* node : feature.nodes) {
        for (const tensorflow::Edge* edge : node->out_edges()) {
          if (!edge->IsControlEdge() || needed.count(edge->dst()) > 0) continue;
          moved[edge->dst()->name()][absl::StrCat("^", node->name())] =
              absl::StrCat("^", group.concat->name());
        }
      }
    }
  }
  return moved;
}

// Sets each group's fed_shape to the shape that TensorFlow infers for the Concat if the shapes of
// fed tensors are unknown.
absl::Status SetFedShapes(const std::set<std::string>& feeds, GraphDef graph,
                          std::map<std::string, NodeDef>* groups) {
  for (NodeDef& node : *graph.mutable_node()) {
    if (node.op() != "Placeholder" || feeds.count(node.name()) == 0) continue;
    auto* const shape = (*node.mutable_attr())["shape"].mutable_shape();
    shape->clear_dim();
    shape->set_unknown_rank(true);
  }
  const absl::StatusOr<std::unique_ptr<ShapedGraph>> shaped = ShapedGraph::Create(graph, feeds);
  if (!shaped.ok()) return shaped.status();
  for (const Node* node : (*shaped)->graph().op_nodes()) {
    const auto found = groups->find(node->name());
    if (found == groups->end()) continue;
    tensorflow::AddNodeAttr("fed_shape", (*shaped)->ShapeOf({node, 0}), &found->second);
  }
  return absl::OkStatus();
}

bool WaitsForAnother(const NodeDef& node) {
  return std::any_of(node.input().begin(), node.input().end(),
                     [](const std::string& input) { return absl::StartsWith(input, "^"); });
}

// The variable whose value or handle `tensor` holds. Returns null if `tensor` holds neither, or if
// an op that may fail, such as an Assert, must run before the variable is read.
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

// Makes one grouped lookup read tables in int8. Adds their variables to `changed`, with the
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
void MoveReads(const GraphView& view, const std::set<std::string>& feeds,
               const std::map<std::string, std::string>& lookups, GraphDef* graph) {
  std::vector<std::string> all;
  for (const auto& [variable, lookup] : lookups) all.push_back(lookup);
  const std::set<const NodeDef*> needed = view.Ancestors(std::move(all));
  std::map<std::string, std::string> moved;
  for (const NodeDef& node : graph->node()) {
    const NodeDef* const variable = VariableOf(view, feeds, node.name());
    if (variable == nullptr || variable->name() == node.name()) continue;
    const auto found = lookups.find(variable->name());
    if (found != lookups.end()) moved["^" + node.name()] = "^" + found->second;
  }
  for (NodeDef& node : *graph->mutable_node()) {
    if (needed.count(view.Find(node.name())) == 0) MoveWaits(moved, &node);
  }
}

}  // namespace

absl::StatusOr<int> GroupLookups(const std::set<std::string>& feeds, GraphDef* graph) {
  const absl::StatusOr<std::unique_ptr<ShapedGraph>> shaped = ShapedGraph::Create(*graph, feeds);
  if (!shaped.ok()) return shaped.status();
  const std::vector<Group> groups = FindGroups(**shaped);
  std::map<std::string, NodeDef> made;
  int lookups = 0;
  for (const Group& group : groups) {
    lookups += group.lookups;
    made[group.concat->name()] = MakeNode(**shaped, group);
  }
  if (groups.empty()) return 0;
  if (absl::Status status = SetFedShapes(feeds, *graph, &made); !status.ok()) return status;
  const auto moved = MovedWaits((*shaped)->graph(), groups);
  for (NodeDef& node : *graph->mutable_node()) {
    if (const auto found = moved.find(node.name()); found != moved.end()) {
      MoveWaits(found->second, &node);
    }
    if (const auto found = made.find(node.name()); found != made.end()) node = found->second;
  }
  return lookups;
}

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
  MoveReads(view, feeds, changed, graph);
  return static_cast<int>(changed.size());
}

}  // namespace colcast::engine
