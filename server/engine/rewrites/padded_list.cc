#include "server/engine/rewrites/padded_list.h"

#include <string_view>

#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using tensorflow::Node;
using Integers = std::vector<int64_t>;

Output In(Output tensor, int index) { return ShapedGraph::InputOf(*tensor.node, index); }

class Reader {
 public:
  Reader(const ShapedGraph& graph, const std::set<std::string>& feeds)
      : graph_(graph), feeds_(feeds) {}

  std::optional<PaddedList> Read(Output tensor) {
    if (!Pass(tensor, "SparseToDense")) return {};
    const Output indices = In(tensor, 0);
    const Output values = In(tensor, 2);
    list_.padding = In(tensor, 3);
    if (!list_.padding.node->IsConstant() || graph_.ShapeOf(list_.padding).dims() != 0 ||
        !ReadIndices(indices) || !ReadShape(In(tensor, 1)) || !ReadValues(values, indices)) {
      return {};
    }
    return std::move(list_);
  }

 private:
  bool Pass(Output tensor, std::string_view op) {
    if (!IsMadeBy(tensor, op, feeds_)) return false;
    list_.nodes.push_back(tensor.node);
    return true;
  }

  bool Is(Output tensor, const Integers& values) const { return graph_.Integers(tensor) == values; }

  // Matches Where(range(0, longest) < expand_dims(lengths, 1)).
  bool ReadIndices(Output indices) {
    if (!Pass(indices, "Where")) return false;
    const Output less = In(indices, 0);
    if (!Pass(less, "Less")) return false;
    const Output steps = In(less, 0);
    const Output ends = In(less, 1);
    if (!Pass(steps, "Range") || !Pass(ends, "ExpandDims")) return false;
    const Output scalar = In(steps, 1);
    list_.lengths = In(ends, 0);
    if (graph_.ShapeOf(list_.lengths).dims() != 1 || list_.lengths.type() != tensorflow::DT_INT64 ||
        !(Is(In(ends, 1), {1}) || Is(In(ends, 1), {-1})) || !Is(In(steps, 0), {0}) ||
        !Is(In(steps, 2), {1}) || !Pass(scalar, "Reshape") || graph_.ShapeOf(scalar).dims() != 0) {
      return false;
    }
    longest_ = In(scalar, 0);
    return ReadLongest();
  }

  // Matches maximum(reduce_max(lengths, 0, keepdims), [0]).
  bool ReadLongest() {
    if (!Pass(longest_, "Maximum") || !Is(In(longest_, 1), {0})) return false;
    const Output most = In(longest_, 0);
    return Pass(most, "Max") && IsSame(In(most, 0), list_.lengths) && Is(In(most, 1), {0}) &&
           graph_.ShapeOf(longest_).dims() == 1;
  }

  // Matches concat([shape(lengths), longest], 0).
  bool ReadShape(Output shape) {
    if (!Pass(shape, "ConcatV2") || shape.node->num_inputs() != 3) return false;
    const Output rows = In(shape, 0);
    return Pass(rows, "Shape") && IsSame(In(rows, 0), list_.lengths) &&
           IsSame(In(shape, 1), longest_);
  }

  bool ReadValues(Output values, Output indices) {
    if (!Pass(values, "GatherNd") || !IsSame(In(values, 1), indices)) return false;
    std::string policy;
    if (tensorflow::GetNodeAttr(values.node->attrs(), "bad_indices_policy", &policy).ok() &&
        !policy.empty()) {
      return false;
    }
    list_.column = In(values, 0);
    list_.gather = values.node->name();
    return graph_.ShapeOf(list_.column).dims() == 2;
  }

  const ShapedGraph& graph_;
  const std::set<std::string>& feeds_;
  Output longest_;
  PaddedList list_;
};

}  // namespace

std::optional<PaddedList> ReadPaddedList(const ShapedGraph& graph,
                                         const std::set<std::string>& feeds, Output tensor) {
  return Reader(graph, feeds).Read(tensor);
}

}  // namespace colcast::engine
