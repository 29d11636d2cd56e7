#include "server/engine/rewrites/list_patterns.h"

#include <string_view>
#include <utility>

#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {

namespace {

using tensorflow::Node;

template <typename T>
bool Has(const Node& node, const char* attribute, T expected) {
  T value{};
  TF_CHECK_OK(tensorflow::GetNodeAttr(node.attrs(), attribute, &value));
  return value == expected;
}

Output In(Output tensor, int index) { return ShapedGraph::InputOf(*tensor.node, index); }

class MaskedMeanReader {
 public:
  MaskedMeanReader(const ShapedGraph& graph, const std::set<std::string>& feeds)
      : graph_(graph), feeds_(feeds) {}

  std::optional<MaskedMean> Read(Output mean) {
    if (!Pass(mean, "RealDiv") || mean.type() != tensorflow::DT_FLOAT) return {};
    const Output sum = In(mean, 0);
    const Output product = ReadSum(sum);
    if (product.node == nullptr || !Pass(product, "Mul")) return {};
    for (const int mask : {1, 0}) {
      const size_t passed = read_.nodes.size();
      read_.rows = In(product, 1 - mask);
      if (graph_.ShapeOf(read_.rows).dims() == 3 && ReadMask(In(product, mask)) &&
          IsNumber(In(mean, 1), In(product, mask))) {
        return std::move(read_);
      }
      read_.nodes.resize(passed);
    }
    return {};
  }

 private:
  bool Pass(Output tensor, std::string_view op) {
    if (!IsMadeBy(tensor, op, feeds_)) return false;
    read_.nodes.push_back(tensor.node);
    return true;
  }

  // Matches a sum over the second of three axes, and returns its input.
  Output ReadSum(Output sum) {
    if (!Pass(sum, "Sum") || !Has(*sum.node, "keep_dims", false)) return {};
    const auto axes = graph_.Integers(In(sum, 1));
    const bool second = axes == std::vector<int64_t>{1} || axes == std::vector<int64_t>{-2};
    const Output summed = In(sum, 0);
    return second && graph_.ShapeOf(summed).dims() == 3 ? summed : Output{};
  }

  // Matches cast(ids != hidden, float)[:, :, None].
  bool ReadMask(Output mask) {
    if (!AddsLastAxis(mask)) return false;
    const Output cast = In(mask, 0);
    if (!Pass(cast, "Cast") || !Has(*cast.node, "SrcT", tensorflow::DT_BOOL)) return false;
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
    return Has<int64_t>(node, "begin_mask", 3) && Has<int64_t>(node, "end_mask", 3) &&
           Has<int64_t>(node, "new_axis_mask", 4) && Has<int64_t>(node, "shrink_axis_mask", 0) &&
           Has<int64_t>(node, "ellipsis_mask", 0) &&
           graph_.Integers(In(tensor, 3)) == std::vector<int64_t>{1, 1, 1};
  }

  // Matches maximum(sum(mask, 1), 1).
  bool IsNumber(Output number, Output mask) {
    if (!Pass(number, "Maximum") || !IsOne(In(number, 1))) return false;
    const Output counted = ReadSum(In(number, 0));
    return counted.node != nullptr && IsSame(counted, mask);
  }

  bool IsOne(Output tensor) const {
    const auto value = graph_.Constant(tensor);
    return value.has_value() && value->dims() == 0 && value->dtype() == tensorflow::DT_FLOAT &&
           value->scalar<float>()() == 1;
  }

  const ShapedGraph& graph_;
  const std::set<std::string>& feeds_;
  MaskedMean read_;
};

}  // namespace

std::optional<MaskedMean> ReadMaskedMean(const ShapedGraph& graph,
                                         const std::set<std::string>& feeds, Output tensor) {
  return MaskedMeanReader(graph, feeds).Read(tensor);
}

namespace {

using Integers = std::vector<int64_t>;

class PaddedListReader {
 public:
  PaddedListReader(const ShapedGraph& graph, const std::set<std::string>& feeds)
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
  return PaddedListReader(graph, feeds).Read(tensor);
}

}  // namespace colcast::engine
