#include "server/engine/rewrites/vocabulary_lookups.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/list_patterns.h"
#include "server/engine/rewrites/shaped_graph.h"
#include "server/engine/rewrites/vocabulary_op.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using tensorflow::Edge;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;

struct VocabularyLookup {
  const Node* find;
  const Node* replaced;  // the SelectV2, or `find` if there is none
  Output values;
  Output token;  // null node if there is no token
  Output token_id;
  std::optional<PaddedList> list;
};

class Reader {
 public:
  Reader(const ShapedGraph& graph, const std::set<std::string>& feeds)
      : graph_(graph), feeds_(feeds) {}

  std::optional<VocabularyLookup> Read(const Node* find) const {
    if (find->type_string() != "LookupTableFindV2" || feeds_.count(find->name()) > 0 ||
        ShapedGraph::InputOf(*find, 0).node->type_string() != "HashTableV2" ||
        find->output_type(0) != tensorflow::DT_INT64 ||
        graph_.ShapeOf(ShapedGraph::InputOf(*find, 2)).dims() != 0) {
      return {};
    }
    VocabularyLookup lookup{find, find, ShapedGraph::InputOf(*find, 1), {}, {}, {}};
    const auto type = lookup.values.type();
    if (type != tensorflow::DT_STRING && type != tensorflow::DT_INT64) return {};
    ReadToken(&lookup);
    lookup.list = ReadPaddedList(graph_, feeds_, lookup.values);
    if (lookup.list.has_value() && Waits(lookup.list->nodes)) lookup.list.reset();
    if (lookup.token.node == nullptr && !lookup.list.has_value()) return {};
    return lookup;
  }

 private:
  bool IsScalarConstant(Output tensor) const {
    return tensor.node->IsConstant() && !Waits({tensor.node}) && graph_.ShapeOf(tensor).dims() == 0;
  }

  // Whether one of the nodes has a control input.
  static bool Waits(const std::vector<const Node*>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
      return std::any_of(node->in_edges().begin(), node->in_edges().end(), [](const Edge* edge) {
        return edge->IsControlEdge() && !edge->src()->IsSource();
      });
    });
  }

  // Finds the SelectV2 around the lookup, if there is one.
  void ReadToken(VocabularyLookup* lookup) const {
    for (const Edge* edge : lookup->find->out_edges()) {
      const Node* const select = edge->dst();
      if (edge->IsControlEdge() || select->type_string() != "SelectV2" || edge->dst_input() != 2 ||
          feeds_.count(select->name()) > 0) {
        continue;
      }
      const Output equal = ShapedGraph::InputOf(*select, 0);
      const Output id = ShapedGraph::InputOf(*select, 1);
      if (equal.node->type_string() != "Equal" || feeds_.count(equal.node->name()) > 0 ||
          Waits({select, equal.node}) || !IsScalarConstant(id)) {
        continue;
      }
      const Output values = ShapedGraph::InputOf(*equal.node, 0);
      const Output token = ShapedGraph::InputOf(*equal.node, 1);
      if (values.node != lookup->values.node || values.index != lookup->values.index ||
          !IsScalarConstant(token)) {
        continue;
      }
      lookup->replaced = select;
      lookup->token = token;
      lookup->token_id = id;
      return;
    }
  }

  const ShapedGraph& graph_;
  const std::set<std::string>& feeds_;
};

std::string NameOf(Output output) { return absl::StrCat(output.node->name(), ":", output.index); }

NodeDef MakeNode(const VocabularyLookup& lookup) {
  NodeDef made;
  made.set_name(lookup.replaced->name());
  made.set_op(VocabularyLookupOpName());
  made.set_device(lookup.find->requested_device());
  const bool has_token = lookup.token.node != nullptr;
  made.add_input(NameOf(lookup.list.has_value() ? lookup.list->column : lookup.values));
  made.add_input(NameOf(ShapedGraph::InputOf(*lookup.find, 0)));
  made.add_input(NameOf(ShapedGraph::InputOf(*lookup.find, 2)));
  if (lookup.list.has_value()) {
    made.add_input(NameOf(lookup.list->lengths));
    made.add_input(NameOf(lookup.list->padding));
  }
  if (has_token) {
    made.add_input(NameOf(lookup.token));
    made.add_input(NameOf(lookup.token_id));
  }
  for (const Edge* edge : lookup.find->in_edges()) {
    if (edge->IsControlEdge() && !edge->src()->IsSource()) {
      made.add_input(absl::StrCat("^", edge->src()->name()));
    }
  }
  tensorflow::AddNodeAttr("T", lookup.values.type(), &made);
  tensorflow::AddNodeAttr("num_lengths", static_cast<int64_t>(lookup.list.has_value()), &made);
  tensorflow::AddNodeAttr("num_tokens", static_cast<int64_t>(has_token), &made);
  tensorflow::AddNodeAttr("gather", lookup.list.has_value() ? lookup.list->gather : "", &made);
  return made;
}

// Moves a node's control edges from replaced lookups to the new ops. A new op waits only for nodes
// for which the lookup waited, so this creates no cycle.
void MoveWaits(const std::map<std::string, std::string>& moved, NodeDef* node) {
  std::set<std::string> seen;
  std::vector<std::string> kept;
  for (const std::string& input : node->input()) {
    const auto found = moved.find(input);
    const std::string& now = found == moved.end() ? input : found->second;
    if (now.front() != '^' || seen.insert(now).second) kept.push_back(now);
  }
  node->clear_input();
  for (std::string& input : kept) node->add_input(std::move(input));
}

bool HasVocabularies(const GraphDef& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const NodeDef& node) { return node.op() == "LookupTableFindV2"; });
}

}  // namespace

absl::StatusOr<int> ReplaceVocabularyLookups(const std::set<std::string>& feeds, GraphDef* graph) {
  if (!HasVocabularies(*graph)) return 0;
  const absl::StatusOr<std::unique_ptr<ShapedGraph>> shaped = ShapedGraph::Create(*graph);
  if (!shaped.ok()) return shaped.status();
  const Reader reader(**shaped, feeds);
  std::map<std::string, NodeDef> made;
  std::map<std::string, std::string> moved;
  for (const Node* node : (*shaped)->graph().op_nodes()) {
    const std::optional<VocabularyLookup> lookup = reader.Read(node);
    if (!lookup.has_value()) continue;
    made[lookup->replaced->name()] = MakeNode(*lookup);
    moved[absl::StrCat("^", node->name())] = absl::StrCat("^", lookup->replaced->name());
  }
  for (NodeDef& node : *graph->mutable_node()) {
    if (const auto found = made.find(node.name()); found != made.end()) node = found->second;
    MoveWaits(moved, &node);
  }
  return static_cast<int>(made.size());
}

}  // namespace colcast::engine
