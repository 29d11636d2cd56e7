#include "server/engine/rewrites/masked_list.h"

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

class Reader {
 public:
  Reader(const ShapedGraph& graph, const std::set<std::string>& feeds)
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
  return Reader(graph, feeds).Read(tensor);
}

}  // namespace colcast::engine
