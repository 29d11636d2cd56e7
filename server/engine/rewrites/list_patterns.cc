#include <string_view>
#include <utility>

#include "server/engine/rewrites/feature_chain.h"

namespace colcast::engine {

namespace {

using tensorflow::Node;

class PatternReader {
 protected:
  explicit PatternReader(const ShapedGraph& graph) : graph_(graph) {}

  // Returns whether the tensor's node has this op; if so, adds the node.
  bool Pass(Output tensor, std::string_view op) {
    if (!graph_.Is(tensor, op)) return false;
    nodes_.push_back(tensor.node);
    return true;
  }

  const ShapedGraph& graph_;
  std::vector<const Node*> nodes_;
};

class MaskedMeanReader : private PatternReader {
 public:
  explicit MaskedMeanReader(const ShapedGraph& graph) : PatternReader(graph) {}

  std::optional<MaskedMean> Read(Output mean) {
    if (!Pass(mean, "RealDiv") || mean.type() != tensorflow::DT_FLOAT) return {};
    if (!PassSum(In(mean, 0)) || !Pass(In(In(mean, 0), 0), "Mul")) return {};
    const Output product = In(In(mean, 0), 0);
    for (const int mask : {1, 0}) {
      const size_t passed = nodes_.size();
      read_.rows = In(product, 1 - mask);
      if (graph_.ShapeOf(read_.rows).dims() == 3 && ReadMask(In(product, mask)) &&
          IsNumber(In(mean, 1), In(product, mask))) {
        read_.nodes = std::move(nodes_);
        return std::move(read_);
      }
      nodes_.resize(passed);
    }
    return {};
  }

 private:
  bool PassSum(Output sum) { return SumsLists(graph_, sum) && Pass(sum, "Sum"); }

  // Matches cast(ids != hidden, float)[:, :, None].
  bool ReadMask(Output mask) {
    if (!AddsLastAxis(mask)) return false;
    const Output cast = In(mask, 0);
    if (!Pass(cast, "Cast") || In(cast, 0).type() != tensorflow::DT_BOOL) return false;
    const Output differs = In(cast, 0);
    if (!Pass(differs, "NotEqual")) return false;
    read_.ids = In(differs, 0);
    const auto hidden = graph_.Integer(In(differs, 1));
    if (!hidden.has_value() || graph_.ShapeOf(read_.ids).dims() != 2) return false;
    read_.hidden = *hidden;
    return true;
  }

  bool AddsLastAxis(Output tensor) {
    if (Pass(tensor, "ExpandDims")) {
      const auto axis = graph_.Integer(In(tensor, 1));
      return axis == 2 || axis == -1;
    }
    if (!Pass(tensor, "StridedSlice")) return false;
    const Node& node = *tensor.node;
    const auto has = [&node](const char* mask, int64_t bits) {
      return Attribute<int64_t>(node, mask) == bits;
    };
    return has("begin_mask", 3) && has("end_mask", 3) && has("new_axis_mask", 4) &&
           has("shrink_axis_mask", 0) && has("ellipsis_mask", 0) &&
           graph_.Integers(In(tensor, 3)) == std::vector<int64_t>{1, 1, 1};
  }

  // Matches maximum(sum(mask, 1), 1).
  bool IsNumber(Output number, Output mask) {
    if (!Pass(number, "Maximum") || !IsOne(In(number, 1))) return false;
    const Output counted = In(number, 0);
    return PassSum(counted) && IsSame(In(counted, 0), mask);
  }

  bool IsOne(Output tensor) const {
    const auto value = graph_.Constant(tensor);
    return value.has_value() && value->dims() == 0 && value->dtype() == tensorflow::DT_FLOAT &&
           value->scalar<float>()() == 1;
  }

  MaskedMean read_;
};

using Integers = std::vector<int64_t>;

class PaddedListReader : private PatternReader {
 public:
  explicit PaddedListReader(const ShapedGraph& graph) : PatternReader(graph) {}

  std::optional<PaddedList> Read(Output tensor) {
    if (!Pass(tensor, "SparseToDense")) return {};
    const Output indices = In(tensor, 0);
    const Output values = In(tensor, 2);
    list_.padding = In(tensor, 3);
    if (!list_.padding.node->IsConstant() || graph_.ShapeOf(list_.padding).dims() != 0 ||
        !ReadIndices(indices) || !ReadShape(In(tensor, 1)) || !ReadValues(values, indices)) {
      return {};
    }
    list_.nodes = std::move(nodes_);
    return std::move(list_);
  }

 private:
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

  Output longest_;
  PaddedList list_;
};

}  // namespace

bool SumsLists(const ShapedGraph& graph, Output sum) {
  if (!graph.Is(sum, "Sum") || Attribute<bool>(*sum.node, "keep_dims")) return false;
  const auto axes = graph.Integers(In(sum, 1));
  return (axes == Integers{1} || axes == Integers{-2}) && graph.ShapeOf(In(sum, 0)).dims() == 3;
}

std::optional<MaskedMean> ReadMaskedMean(const ShapedGraph& graph, Output tensor) {
  return MaskedMeanReader(graph).Read(tensor);
}

std::optional<PaddedList> ReadPaddedList(const ShapedGraph& graph, Output tensor) {
  return PaddedListReader(graph).Read(tensor);
}

}  // namespace colcast::engine
