#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/rewrites.h"
#include "server/engine/rewrites/shaped_graph.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::PartialTensorShape;

// Smaller products take less time than the op's overhead.
constexpr int64_t kLeastDepth = 16;
constexpr int64_t kLeastWidth = 16;

struct Product {
  std::vector<const Node*> nodes;  // the MatMul first; the last node's output is the result
  Output x;
  Output weights;         // the whole matrix
  int64_t first_row = 0;  // first row used
  int64_t depth = 0;      // number of rows used
  std::vector<Output> added;
  bool relu = false;
  bool makes_nan_zero = false;  // like TensorFlow when it fuses a product, one bias and a Relu
};

class ProductFinder {
 public:
  explicit ProductFinder(const ShapedGraph& graph) : graph_(graph) {}

  std::optional<Product> Find(const Node* node) const {
    if (!Is(*node, "MatMul") || node->output_type(0) != tensorflow::DT_FLOAT ||
        Attribute<bool>(*node, "transpose_a") || Attribute<bool>(*node, "transpose_b")) {
      return {};
    }
    Product product;
    product.nodes.push_back(node);
    product.x = In(*node, 0);
    product.weights = In(*node, 1);
    const PartialTensorShape weights = graph_.ShapeOf(product.weights);
    if (weights.dims() != 2 || weights.dim_size(0) < kLeastDepth ||
        weights.dim_size(1) < kLeastWidth) {
      return {};
    }
    product.depth = weights.dim_size(0);
    PassSlice(weights.dim_size(1), &product);
    if (!AreFixed(product.weights)) return {};
    while (TakeNext(weights.dim_size(1), &product)) {
    }
    return product;
  }

 private:
  bool Is(const Node& node, std::string_view op) const { return graph_.Is(node, op); }

  // If the weights are a Slice of some rows, as late expansion writes them, replaces them with the
  // source of the slice.
  void PassSlice(int64_t width, Product* product) const {
    const Node& slice = *product->weights.node;
    if (!Is(slice, "Slice")) return;
    const Output source = In(slice, 0);
    const auto begin = graph_.Integers(In(slice, 1));
    if (!begin.has_value() || (*begin)[1] != 0 || graph_.ShapeOf(source).dim_size(1) != width) {
      return;
    }
    product->first_row = (*begin)[0];
    product->weights = source;
  }

  // Whether the weights are a constant, a variable, or rows of a variable that are gathered once.
  bool AreFixed(Output weights) const {
    while (Is(*weights.node, "Identity") || Is(*weights.node, KernelRowsOpName())) {
      weights = In(weights, 0);
    }
    return Is(*weights.node, "Const") ||
           (Is(*weights.node, "ReadVariableOp") && Is(*In(weights, 0).node, "VarHandleOp"));
  }

  // Adds the only reader of the product's result, if the op can also do that node's work.
  bool TakeNext(int64_t width, Product* product) const {
    const Node* const last = product->nodes.back();
    if (product->relu || last->out_edges().size() != 1) return false;
    const tensorflow::Edge* const edge = *last->out_edges().begin();
    const Node* const reader = edge->dst();
    if (edge->IsControlEdge()) return false;
    if (Is(*reader, "Relu")) {
      product->relu = true;
      product->makes_nan_zero = product->added.size() == 1;
    } else if (Is(*reader, "BiasAdd") || Is(*reader, "AddV2") || Is(*reader, "Add")) {
      const int other = 1 - edge->dst_input();
      if (Is(*reader, "BiasAdd") && other != 1) return false;
      const Output added = In(*reader, other);
      if (!IsRow(graph_.ShapeOf(added), width)) return false;
      product->added.push_back(added);
    } else {
      return false;
    }
    product->nodes.push_back(reader);
    return true;
  }

  static bool IsRow(const PartialTensorShape& shape, int64_t width) {
    return (shape.dims() == 1 && shape.dim_size(0) == width) ||
           (shape.dims() == 2 && shape.dim_size(0) == 1 && shape.dim_size(1) == width);
  }

  const ShapedGraph& graph_;
};

NodeDef MakeNode(const Product& product) {
  NodeDef made;
  made.set_name(product.nodes.back()->name());
  made.set_op(Bfloat16ProductOpName());
  made.set_device(product.nodes.front()->requested_device());
  made.add_input(NameOf(product.x));
  made.add_input(NameOf(product.weights));
  for (const Output& added : product.added) made.add_input(NameOf(added));
  for (const std::string& wait : WaitsOf(product.nodes)) made.add_input(wait);
  tensorflow::AddNodeAttr("num_added", static_cast<int64_t>(product.added.size()), &made);
  tensorflow::AddNodeAttr("first_row", product.first_row, &made);
  tensorflow::AddNodeAttr("depth", product.depth, &made);
  tensorflow::AddNodeAttr("relu", product.relu, &made);
  tensorflow::AddNodeAttr("makes_nan_zero", product.makes_nan_zero, &made);
  return made;
}

}  // namespace

absl::StatusOr<int> UseBfloat16Products(const std::set<std::string>& feeds, GraphDef* graph) {
  const absl::StatusOr<std::unique_ptr<ShapedGraph>> shaped = ShapedGraph::Create(*graph, feeds);
  if (!shaped.ok()) return shaped.status();
  const ProductFinder finder(**shaped);
  std::map<std::string, NodeDef> made;
  for (const Node* node : (*shaped)->graph().op_nodes()) {
    if (const std::optional<Product> product = finder.Find(node); product.has_value()) {
      made[product->nodes.back()->name()] = MakeNode(*product);
    }
  }
  for (NodeDef& node : *graph->mutable_node()) {
    if (const auto found = made.find(node.name()); found != made.end()) node = found->second;
  }
  return static_cast<int>(made.size());
}

}  // namespace colcast::engine
