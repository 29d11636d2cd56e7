#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/list_patterns.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewrites.h"
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
  explicit Reader(const ShapedGraph& graph) : graph_(graph) {}

  std::optional<VocabularyLookup> Read(const Node* find) const {
    if (!graph_.Is(*find, "LookupTableFindV2") ||
        ShapedGraph::InputOf(*find, 0).node->type_string() != "HashTableV2" ||
        find->output_type(0) != tensorflow::DT_INT64 ||
        graph_.ShapeOf(ShapedGraph::InputOf(*find, 2)).dims() != 0) {
      return {};
    }
    VocabularyLookup lookup{find, find, ShapedGraph::InputOf(*find, 1), {}, {}, {}};
    const auto type = lookup.values.type();
    if (type != tensorflow::DT_STRING && type != tensorflow::DT_INT64) return {};
    ReadToken(&lookup);
    lookup.list = ReadPaddedList(graph_, lookup.values);
    if (lookup.list.has_value() && !WaitsOf(lookup.list->nodes).empty()) lookup.list.reset();
    if (lookup.token.node == nullptr && !lookup.list.has_value()) return {};
    return lookup;
  }

 private:
  bool IsScalarConstant(Output tensor) const {
    return tensor.node->IsConstant() && WaitsOf({tensor.node}).empty() &&
           graph_.ShapeOf(tensor).dims() == 0;
  }

  // Finds the SelectV2 around the lookup, if there is one.
  void ReadToken(VocabularyLookup* lookup) const {
    for (const Edge* edge : lookup->find->out_edges()) {
      const Node* const select = edge->dst();
      if (edge->IsControlEdge() || edge->dst_input() != 2 || !graph_.Is(*select, "SelectV2")) {
        continue;
      }
      const Output equal = ShapedGraph::InputOf(*select, 0);
      const Output id = ShapedGraph::InputOf(*select, 1);
      if (!graph_.Is(equal, "Equal") || !WaitsOf({select, equal.node}).empty() ||
          !IsScalarConstant(id)) {
        continue;
      }
      const Output values = ShapedGraph::InputOf(*equal.node, 0);
      const Output token = ShapedGraph::InputOf(*equal.node, 1);
      if (!IsSame(values, lookup->values) || !IsScalarConstant(token)) continue;
      lookup->replaced = select;
      lookup->token = token;
      lookup->token_id = id;
      return;
    }
  }

  const ShapedGraph& graph_;
};

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
  for (const std::string& wait : WaitsOf({lookup.find})) made.add_input(wait);
  tensorflow::AddNodeAttr("T", lookup.values.type(), &made);
  tensorflow::AddNodeAttr("num_lengths", static_cast<int64_t>(lookup.list.has_value()), &made);
  tensorflow::AddNodeAttr("num_tokens", static_cast<int64_t>(has_token), &made);
  tensorflow::AddNodeAttr("gather", lookup.list.has_value() ? lookup.list->gather : "", &made);
  return made;
}

bool HasVocabularies(const GraphDef& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const NodeDef& node) { return node.op() == "LookupTableFindV2"; });
}

}  // namespace

absl::StatusOr<int> ReplaceVocabularyLookups(const std::set<std::string>& feeds, GraphDef* graph) {
  if (!HasVocabularies(*graph)) return 0;
  const absl::StatusOr<std::unique_ptr<ShapedGraph>> shaped = ShapedGraph::Create(*graph, feeds);
  if (!shaped.ok()) return shaped.status();
  const Reader reader(**shaped);
  std::map<std::string, NodeDef> made;
  // A new op waits only for nodes that the lookup waited for, so moving edges to it creates no
  // cycle.
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
