#include "server/engine/row_trials.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/signature.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace colcast::engine {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

constexpr size_t kMaxResults = 1000;  // bounded, because clients choose the one-row inputs

// Zeros, or strings that read as zero, with `rows` rows if the input is batched and 1 for other
// unknown dimensions. Returns nullopt for a dtype that is unknown or has no zero.
std::optional<Tensor> MadeUp(const DeclaredInput& input, int64_t rows) {
  const bool is_string = input.dtype == tensorflow::DT_STRING;
  if (!is_string && !tensorflow::DataTypeCanUseMemcpy(input.dtype)) return std::nullopt;
  tensorflow::TensorShape shape;
  for (const int64_t dim : input.dims) shape.AddDim(dim < 0 ? 1 : dim);
  if (input.batched() && shape.dims() > 0) shape.set_dim(0, rows);
  Tensor tensor(input.dtype, shape);
  if (is_string) {
    tensor.flat<tensorflow::tstring>().setConstant("0");
  } else if (tensor.TotalBytes() > 0) {
    std::memset(tensor.data(), 0, tensor.TotalBytes());
  }
  return tensor;
}

bool Answers(const Signature& signature, const std::vector<int>& one_row,
             const std::vector<int>& outputs) {
  std::vector<Tensor> feeds;
  const absl::Span<const DeclaredInput> inputs = signature.inputs().inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool has_one = absl::c_linear_search(one_row, static_cast<int>(i));
    std::optional<Tensor> feed = MadeUp(inputs[i], has_one ? 1 : 2);
    if (!feed.has_value()) return false;
    feeds.push_back(*std::move(feed));
  }
  RunResult result;
  return signature.RunFeeds(feeds, outputs, &result).ok();
}

// The name of the op's argument that the node's input `position` belongs to.
std::string ArgumentAt(const NodeDef& node, int position) {
  const tensorflow::OpDef* op = nullptr;
  tensorflow::NameRangeMap arguments;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok() ||
      !tensorflow::NameRangesForNode(node, *op, &arguments, nullptr).ok()) {
    return "";
  }
  for (const auto& [name, range] : arguments) {
    if (position >= range.first && position < range.second) return std::string(name);
  }
  return "";
}

bool Bit(const NodeDef& node, const char* mask) {
  int64_t bits = 0;
  return tensorflow::TryGetNodeAttr(node, mask, &bits) && (bits & 1) != 0;
}

// Whether a StridedSlice takes a range of rows, as splits[1:] does.
bool SlicesRows(const NodeDef& node) {
  return !(Bit(node, "begin_mask") && Bit(node, "end_mask")) && !Bit(node, "shrink_axis_mask") &&
         !Bit(node, "new_axis_mask") && !Bit(node, "ellipsis_mask");
}

bool IsPart(const NodeDef& node, int position) {
  if (node.op() == "StridedSlice") return position == 0 && SlicesRows(node);
  const std::string argument = ArgumentAt(node, position);
  const auto ends_with_any = [&argument](std::initializer_list<std::string_view> ends) {
    return absl::c_any_of(ends, [&](auto end) { return absl::EndsWith(argument, end); });
  };
  if (ends_with_any({"splits", "segment_ids", "rowids", "row_partition_tensors"})) return true;
  return absl::StrContains(node.op(), "Sparse") && !absl::StrContains(node.op(), "SparseSegment") &&
         !absl::StrContains(node.op(), "SparseApply") &&
         ends_with_any({"indices", "shape", "shapes"});
}

// Whether the op's output has the rows of its first input.
bool KeepsRows(const NodeDef& node) {
  static constexpr std::string_view kOps[] = {
      "Cast",        "CheckNumerics",          "EnsureShape",     "ExpandDims", "Identity",
      "Placeholder", "PlaceholderWithDefault", "PreventGradient", "Reshape",    "Snapshot",
      "Squeeze",     "StopGradient",           "StridedSlice"};
  return absl::c_linear_search(kOps, node.op());
}

class PartsWalk {
 public:
  explicit PartsWalk(const tensorflow::FunctionDefLibrary& library) {
    for (const FunctionDef& function : library.function()) {
      library_[function.signature().name()] = &function;
    }
  }

  // Whether a value is used as part of a sparse or ragged tensor. `open` names the nodes, or the
  // function's arguments, from which to start.
  bool Reaches(const GraphView& view, std::vector<std::string> open) {
    std::set<std::string> seen;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (!seen.insert(name).second) continue;
      for (const auto& [node, position] : view.ReadersOf(name)) {
        if (IsPart(*node, position) || ReachesInside(*node, position)) return true;
        if (position == 0 && KeepsRows(*node)) open.push_back(node->name());
      }
    }
    return false;
  }

 private:
  bool ReachesInside(const NodeDef& node, int position) {
    const auto body = node.attr().find("f");
    const bool calls = absl::EndsWith(node.op(), "PartitionedCall") && body != node.attr().end();
    const auto found = library_.find(calls ? body->second.func().name() : node.op());
    if (found == library_.end()) return false;
    const FunctionDef& function = *found->second;
    if (position >= function.signature().input_arg_size()) return false;
    const std::string& argument = function.signature().input_arg(position).name();
    return visited_.insert({&function, argument}).second &&
           Reaches(GraphView(function.node_def()), {argument});
  }

  std::map<std::string, const FunctionDef*> library_;
  std::set<std::pair<const FunctionDef*, std::string>> visited_;
};

}  // namespace

bool RowTrials::NeedRepeated(const Signature& signature, const std::vector<int>& one_row,
                             const std::vector<int>& outputs) const {
  const Case tried(one_row, outputs);
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = results_.find(tried);
    if (found != results_.end()) return found->second;
  }
  const bool need =
      !Answers(signature, one_row, outputs) && Answers(signature, /*one_row=*/{}, outputs);
  const absl::MutexLock lock(&mutex_);
  if (results_.size() < kMaxResults) results_.emplace(tried, need);
  return need;
}

bool TakesSparseParts(const tensorflow::GraphDef& graph,
                      const tensorflow::SignatureDef& signature) {
  if (signature.inputs().size() < 2) return false;
  std::vector<std::string> inputs;
  for (const auto& [alias, info] : signature.inputs()) inputs.push_back(NodeOf(info.name()));
  return PartsWalk(graph.library()).Reaches(GraphView(graph), inputs);
}

}  // namespace colcast::engine
