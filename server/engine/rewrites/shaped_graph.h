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
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/graph.pb.h"
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

// Whether the tensor is the first output of a node with this op that is not fed.
bool IsMadeBy(Output tensor, std::string_view op, const std::set<std::string>& feeds);

class ShapedGraph {
 public:
  // Errors are TensorFlow's, for example of an unregistered op.
  static absl::StatusOr<std::unique_ptr<ShapedGraph>> Create(const tensorflow::GraphDef& graph);

  const tensorflow::Graph& graph() const { return graph_; }

  static Output InputOf(const tensorflow::Node& node, int index);
  tensorflow::PartialTensorShape ShapeOf(Output output) const;

  // The value of a tensor that depends only on constants.
  std::optional<tensorflow::Tensor> Constant(Output output) const;
  // The same for int32 and int64: a scalar's value, or the elements of any shape.
  std::optional<int64_t> Integer(Output output) const;
  std::optional<std::vector<int64_t>> Integers(Output output) const;

 private:
  ShapedGraph();

  // Infers the shapes that depend on hash tables.
  absl::Status InferLookups();

  tensorflow::Graph graph_;
  tensorflow::ShapeRefiner refiner_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_SHAPED_GRAPH_H_
