#include "server/engine/rewrites/shaped_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/common_runtime/eval_const_tensor.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/public/version.h"

namespace colcast::engine {
namespace {

// Whether the node looks up a table with one value per key. The output then has the keys' shape,
// which TensorFlow does not infer.
bool IsLookup(const tensorflow::Node& node) {
  return node.type_string() == "LookupTableFindV2" &&
         In(node, 0).node->type_string() == "HashTableV2";
}

}  // namespace

using tensorflow::Node;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;

ShapedGraph::ShapedGraph(std::set<std::string> feeds)
    : feeds_(std::move(feeds)),
      graph_(tensorflow::OpRegistry::Global()),
      refiner_(TF_GRAPH_DEF_VERSION, graph_.op_registry()) {
  refiner_.set_require_shape_inference_fns(false);
}

std::string NameOf(Output output) { return absl::StrCat(output.node->name(), ":", output.index); }

std::set<std::string> WaitsOf(absl::Span<const Node* const> nodes) {
  std::set<std::string> waits;
  for (const Node* const node : nodes) {
    for (const tensorflow::Edge* edge : node->in_edges()) {
      if (!edge->IsControlEdge() || edge->src()->IsSource()) continue;
      waits.insert(absl::StrCat("^", edge->src()->name()));
    }
  }
  return waits;
}

absl::StatusOr<std::unique_ptr<ShapedGraph>> ShapedGraph::Create(const tensorflow::GraphDef& graph,
                                                                 std::set<std::string> feeds) {
  std::unique_ptr<ShapedGraph> shaped(new ShapedGraph(std::move(feeds)));
  tensorflow::ImportGraphDefOptions options;
  options.validate_colocation_constraints = false;
  absl::Status status =
      tensorflow::ImportGraphDef(options, graph, &shaped->graph_, &shaped->refiner_);
  if (status.ok()) status = shaped->InferLookups();
  if (!status.ok()) return status;
  return shaped;
}

absl::Status ShapedGraph::InferLookups() {
  std::vector<Node*> order;
  tensorflow::GetReversePostOrder(graph_, &order);
  bool has_lookups = false;
  for (const Node* node : order) {
    auto* const context = refiner_.GetContext(node);
    if (context == nullptr) continue;
    absl::Status status;
    if (IsLookup(*node)) {
      has_lookups = true;
      status = refiner_.SetShape(node, 0, context->input(1));
    } else if (has_lookups) {
      bool refined = false;
      status = refiner_.UpdateNode(node, /*relax=*/false, &refined);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

Output In(const Node& node, int index) {
  const tensorflow::Edge* edge = nullptr;
  TF_CHECK_OK(node.input_edge(index, &edge));
  return {edge->src(), edge->src_output()};
}

PartialTensorShape ShapedGraph::ShapeOf(Output output) const {
  auto* const context = refiner_.GetContext(output.node);
  if (context == nullptr) return {};
  const auto shape = context->output(output.index);
  if (!context->RankKnown(shape)) return {};
  std::vector<int64_t> dims;
  for (int i = 0; i < context->Rank(shape); ++i) {
    dims.push_back(
        context->ValueKnown(context->Dim(shape, i)) ? context->Value(context->Dim(shape, i)) : -1);
  }
  return PartialTensorShape(dims);
}

std::optional<Tensor> ShapedGraph::Constant(Output output) const {
  const auto nothing_known = [](const Node&, int) -> std::optional<Tensor> { return {}; };
  tensorflow::EvaluateConstantTensorRunner runner;
  runner.graph_def_version = TF_GRAPH_DEF_VERSION;
  auto value = tensorflow::EvaluateConstantTensor(*output.node, output.index, refiner_,
                                                  nothing_known, runner);
  return value.ok() ? *std::move(value) : std::nullopt;
}

std::optional<std::vector<int64_t>> ShapedGraph::Integers(Output output) const {
  const std::optional<Tensor> value = Constant(output);
  return value.has_value() ? IntegersOf(*value) : std::nullopt;
}

std::optional<int64_t> ShapedGraph::Integer(Output output) const {
  // Broadcasting a scalar keeps the shape; a longer constant might change the rank.
  if (ShapeOf(output).dims() != 0) return {};
  const std::optional<std::vector<int64_t>> values = Integers(output);
  if (!values.has_value()) return {};
  return values->front();
}

}  // namespace colcast::engine
