// A graph with the shapes that TensorFlow can infer without running it.
#ifndef COLCAST_SERVER_ENGINE_REWRITES_SHAPED_GRAPH_H_
#define COLCAST_SERVER_ENGINE_REWRITES_SHAPED_GRAPH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"

namespace colcast::engine {

struct Output {
  const tensorflow::Node* node = nullptr;
  int index = 0;

  tensorflow::DataType type() const { return node->output_type(index); }
};

inline bool IsSame(Output a, Output b) { return a.node == b.node && a.index == b.index; }

// REQUIRES that the node's op has the attribute `name` of type T.
template <typename T>
T Attribute(const tensorflow::Node& node, const char* name) {
  T value{};
  TF_CHECK_OK(tensorflow::GetNodeAttr(node.attrs(), name, &value));
  return value;
}

// The output's name as an input of a NodeDef: "node:0".
std::string NameOf(Output output);

// The control inputs of the nodes, as inputs of a NodeDef: "^node".
std::set<std::string> WaitsOf(absl::Span<const tensorflow::Node* const> nodes);

// The input `index` of a node, or of the node that outputs `tensor`.
Output In(const tensorflow::Node& node, int index);
inline Output In(Output tensor, int index) { return In(*tensor.node, index); }

class ShapedGraph {
 public:
  // `feeds` names the nodes that every run feeds. Errors are TensorFlow's, for example for an
  // unregistered op.
  static absl::StatusOr<std::unique_ptr<ShapedGraph>> Create(const tensorflow::GraphDef& graph,
                                                             std::set<std::string> feeds = {});

  const tensorflow::Graph& graph() const { return graph_; }

  // Whether the tensor is the first output of a node that has this op and is not fed.
  bool Is(Output tensor, std::string_view op) const {
    return tensor.index == 0 && Is(*tensor.node, op);
  }
  bool Is(const tensorflow::Node& node, std::string_view op) const {
    return node.type_string() == op && feeds_.count(node.name()) == 0;
  }

  tensorflow::PartialTensorShape ShapeOf(Output output) const;

  // The value of a tensor that depends only on constants.
  std::optional<tensorflow::Tensor> Constant(Output output) const;
  // Like Constant(), but only for int32 and int64: of a scalar, or of a tensor of any shape.
  std::optional<int64_t> Integer(Output output) const;
  std::optional<std::vector<int64_t>> Integers(Output output) const;

 private:
  explicit ShapedGraph(std::set<std::string> feeds);

  // Infers the shapes that depend on hash tables.
  absl::Status InferLookups();

  const std::set<std::string> feeds_;
  tensorflow::Graph graph_;
  tensorflow::ShapeRefiner refiner_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_SHAPED_GRAPH_H_
