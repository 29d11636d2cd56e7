#include "server/engine/rewrites/grouped_lookups.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/feature_chain.h"
#include "server/engine/rewrites/lookup_op.h"
#include "server/engine/rewrites/shaped_graph.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;

// TensorFlow handles a single lookup in a Concat well.
constexpr int kLeastLookups = 2;

struct Group {
  const Node* concat;
  std::vector<FeatureChain> features;
  int lookups = 0;
};

// The features of a Concat of matrices, in column order; none if one of them is not recognized.
Group FindGroup(const ShapedGraph& graph, const std::set<std::string>& feeds, const Node* concat) {
  Group group{concat, {}};
  const int last = concat->num_inputs() - 1;
  const auto axis = graph.Integer(ShapedGraph::InputOf(*concat, last));
  if (axis != 1 && axis != -1) return group;
  for (int i = 0; i < last; ++i) {
    auto feature = ReadFeatureChain(graph, feeds, ShapedGraph::InputOf(*concat, i));
    if (!feature.has_value()) return {concat, {}};
    group.lookups += feature->table.node != nullptr ? 1 : 0;
    group.features.push_back(*std::move(feature));
  }
  return group;
}

std::vector<Group> FindGroups(const ShapedGraph& graph, const std::set<std::string>& feeds) {
  std::vector<Group> groups;
  for (const Node* node : graph.graph().op_nodes()) {
    if (node->type_string() != "ConcatV2" || feeds.count(node->name()) > 0) continue;
    Group group = FindGroup(graph, feeds, node);
    if (!group.features.empty() && group.lookups >= kLeastLookups) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

std::string NameOf(Output output) { return absl::StrCat(output.node->name(), ":", output.index); }

// The nodes for which these nodes wait through control edges.
std::set<std::string> ControlInputs(const Group& group) {
  std::set<std::string> names;
  const auto add = [&names](const Node* node) {
    for (const tensorflow::Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge() && !edge->src()->IsSource()) {
        names.insert(absl::StrCat("^", edge->src()->name()));
      }
    }
  };
  add(group.concat);
  for (const FeatureChain& feature : group.features) {
    for (const Node* node : feature.nodes) add(node);
  }
  return names;
}

// The position of an output in a list of distinct outputs, to which it is appended if missing; -1
// for a null output.
int PositionOf(Output output, std::vector<Output>* outputs) {
  if (output.node == nullptr) return -1;
  const auto is_same = [output](Output other) {
    return other.node == output.node && other.index == output.index;
  };
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
  for (const FeatureChain& feature : group.features) {
    made.add_input(NameOf(feature.column));
    column_types.push_back(feature.column.type());
    chains.push_back(feature.chain.Words());
    shapes.push_back(feature.shape);
    lookups.push_back(feature.lookup);
    positions.push_back(PositionOf(feature.table, &tables));
    repeats.push_back(PositionOf(feature.rows, &rows));
  }
  for (const Output table : tables) {
    made.add_input(NameOf(table));
    table_types.push_back(table.type());
  }
  for (const Output number : rows) made.add_input(NameOf(number));
  for (const std::string& name : ControlInputs(group)) made.add_input(name);
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

// All nodes on which the groups' Concats depend, including themselves.
std::set<const Node*> Ancestors(const std::vector<Group>& groups) {
  std::set<const Node*> seen;
  std::vector<const Node*> open;
  for (const Group& group : groups) open.push_back(group.concat);
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const tensorflow::Edge* edge : node->in_edges()) open.push_back(edge->src());
  }
  return seen;
}

// Moves control edges from nodes that a group replaces to the group, so that those nodes need not
// run (a control edge may exist for a node's errors). Nodes that the groups themselves need keep
// their edges, since moving them would create a cycle.
std::map<std::string, std::string> NewWaits(const std::vector<Group>& groups,
                                            std::map<std::string, std::set<std::string>>* waiting) {
  std::map<std::string, std::string> moved;
  const std::set<const Node*> needed = Ancestors(groups);
  for (const Group& group : groups) {
    for (const FeatureChain& feature : group.features) {
      for (const Node* node : feature.nodes) {
        moved[absl::StrCat("^", node->name())] = absl::StrCat("^", group.concat->name());
        for (const tensorflow::Edge* edge : node->out_edges()) {
          if (edge->IsControlEdge() && needed.count(edge->dst()) == 0) {
            (*waiting)[edge->dst()->name()].insert(absl::StrCat("^", node->name()));
          }
        }
      }
    }
  }
  return moved;
}

void MoveWaits(const std::map<std::string, std::string>& moved, const std::set<std::string>& from,
               NodeDef* node) {
  std::vector<std::string> kept;
  std::set<std::string> seen;
  for (const std::string& input : node->input()) {
    const std::string& now = from.count(input) > 0 ? moved.at(input) : input;
    if (now.front() != '^' || seen.insert(now).second) kept.push_back(now);
  }
  node->clear_input();
  for (std::string& input : kept) node->add_input(std::move(input));
}

}  // namespace

absl::StatusOr<int> GroupLookups(const std::set<std::string>& feeds, GraphDef* graph) {
  const absl::StatusOr<std::unique_ptr<ShapedGraph>> shaped = ShapedGraph::Create(*graph);
  if (!shaped.ok()) return shaped.status();
  const std::vector<Group> groups = FindGroups(**shaped, feeds);
  std::map<std::string, NodeDef> made;
  int lookups = 0;
  for (const Group& group : groups) {
    lookups += group.lookups;
    made[group.concat->name()] = MakeNode(**shaped, group);
  }
  std::map<std::string, std::set<std::string>> waiting;
  const std::map<std::string, std::string> moved = NewWaits(groups, &waiting);
  for (NodeDef& node : *graph->mutable_node()) {
    if (const auto found = waiting.find(node.name()); found != waiting.end()) {
      MoveWaits(moved, found->second, &node);
    }
    if (const auto found = made.find(node.name()); found != made.end()) node = found->second;
  }
  return lookups;
}

}  // namespace colcast::engine
