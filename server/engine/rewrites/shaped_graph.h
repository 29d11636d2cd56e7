// A graph whose tensors' shapes are known as far as TensorFlow can tell without running it.
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

// An output of a node.
struct Output {
  const tensorflow::Node* node = nullptr;
  int index = 0;

  tensorflow::DataType type() const { return node->output_type(index); }
};

inline bool IsSame(Output a, Output b) { return a.node == b.node && a.index == b.index; }

// Whether it is the first output of such an op, and is not fed.
bool IsMadeBy(Output tensor, std::string_view op, const std::set<std::string>& feeds);

class ShapedGraph {
 public:
  // Errors are TensorFlow's own: of an op that is not registered, say.
  static absl::StatusOr<std::unique_ptr<ShapedGraph>> Create(const tensorflow::GraphDef& graph);

  const tensorflow::Graph& graph() const { return graph_; }

  static Output InputOf(const tensorflow::Node& node, int index);
  tensorflow::PartialTensorShape ShapeOf(Output output) const;

  // The value of a tensor that depends on constants alone.
  std::optional<tensorflow::Tensor> Constant(Output output) const;
  // The same, of an int32 or int64: a scalar, or the elements of any shape.
  std::optional<int64_t> Integer(Output output) const;
  std::optional<std::vector<int64_t>> Integers(Output output) const;

 private:
  ShapedGraph();

  // Infers what depends on hash tables.
  absl::Status InferLookups();

  tensorflow::Graph graph_;
  tensorflow::ShapeRefiner refiner_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_REWRITES_SHAPED_GRAPH_H_
