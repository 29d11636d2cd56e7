#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/rewrites/rewrites.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {
namespace {

using tensorflow::NodeDef;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// The op ColcastKernelRows: rows of a variable, gathered on first use. It exists only in the
// server; a SavedModel never contains it.
//
// Inputs: `kernel`, of rank 1 or more; `rows`, a vector of positions that are the same in every
// run. Attribute: `axis`, 0 or 1. Output: the same as GatherV2's.
//
// The op gathers again if `kernel` is a different tensor. It keeps a reference to the kernel that
// it read, so TensorFlow cannot change the values in place.
class KernelRowsOp final : public tensorflow::OpKernel {
 public:
  explicit KernelRowsOp(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("axis", &axis_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& kernel = context->input(0);
    const std::lock_guard<std::mutex> lock(mutex_);
    // Always gathers for an empty kernel, which looks like a source_ that was never set.
    if (kernel.NumElements() == 0 || kernel.data() != source_.data() ||
        kernel.shape() != source_.shape()) {
      OP_REQUIRES_OK(context, Gather(context, kernel, context->input(1)));
      source_ = kernel;
    }
    context->set_output(0, gathered_);
  }

 private:
  absl::Status Gather(OpKernelContext* context, const Tensor& kernel, const Tensor& rows) {
    if (kernel.dims() <= axis_ || rows.dims() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("Expected a kernel with rows and a vector of positions, got ",
                       kernel.shape().DebugString(), " and ", rows.shape().DebugString()));
    }
    const std::vector<int64_t> positions = *IntegersOf(rows);
    const int64_t size = kernel.dim_size(axis_);
    for (const int64_t position : positions) {
      if (position >= 0 && position < size) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("indices: ", position, " is not in [0, ", size, ")"));
    }
    TensorShape shape = kernel.shape();
    shape.set_dim(axis_, static_cast<int64_t>(positions.size()));
    if (absl::Status status = context->allocate_temp(kernel.dtype(), shape, &gathered_);
        !status.ok()) {
      return status;
    }
    if (shape.num_elements() > 0) Copy(kernel, positions);
    return absl::OkStatus();
  }

  void Copy(const Tensor& kernel, const std::vector<int64_t>& positions) {
    const int64_t outer = axis_ == 0 ? 1 : kernel.dim_size(0);
    const size_t whole = kernel.TotalBytes() / outer;
    const size_t row = whole / kernel.dim_size(axis_);
    const auto* from = static_cast<const char*>(kernel.data());
    auto* to = static_cast<char*>(gathered_.data());
    for (int64_t i = 0; i < outer; ++i, from += whole) {
      for (const int64_t position : positions) {
        std::memcpy(to, from + position * row, row);
        to += row;
      }
    }
  }

  int axis_ = 0;
  std::mutex mutex_;
  Tensor source_;  // the kernel from which the rows were gathered
  Tensor gathered_;
};

REGISTER_OP("ColcastKernelRows")
    .Input("kernel: T")
    .Input("rows: Tindices")
    .Output("gathered: T")
    .Attr("T: {float, double, half, bfloat16, int32, int64}")
    .Attr("Tindices: {int32, int64}")
    .Attr("axis: int >= 0")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* context) {
      int axis = 0;
      TF_RETURN_IF_ERROR(context->GetAttr("axis", &axis));
      tensorflow::shape_inference::ShapeHandle kernel, rows, shape;
      TF_RETURN_IF_ERROR(context->WithRankAtLeast(context->input(0), axis + 1, &kernel));
      TF_RETURN_IF_ERROR(context->WithRank(context->input(1), 1, &rows));
      TF_RETURN_IF_ERROR(context->ReplaceDim(kernel, axis, context->Dim(rows, 0), &shape));
      context->set_output(0, shape);
      return absl::OkStatus();
    });
REGISTER_KERNEL_BUILDER(Name("ColcastKernelRows").Device(tensorflow::DEVICE_CPU), KernelRowsOp);

// The dtypes that the op supports.
constexpr tensorflow::DataTypeSet kTypes =
    tensorflow::ToSet(tensorflow::DT_FLOAT) | tensorflow::ToSet(tensorflow::DT_DOUBLE) |
    tensorflow::ToSet(tensorflow::DT_HALF) | tensorflow::ToSet(tensorflow::DT_BFLOAT16) |
    tensorflow::ToSet(tensorflow::DT_INT32) | tensorflow::ToSet(tensorflow::DT_INT64);

class KernelFinder {
 public:
  KernelFinder(const std::set<std::string>& feeds, const tensorflow::GraphDef& graph)
      : feeds_(feeds), view_(graph) {}

  // Whether the node gathers rows or columns of a variable at constant positions.
  bool IsFixed(const NodeDef& gather) const {
    int batch_dims = 0;
    TryGetNodeAttr(gather, "batch_dims", &batch_dims);
    if (gather.op() != "GatherV2" || gather.input_size() < 3 || batch_dims != 0) return false;
    const NodeDef* const rows = Find(gather.input(1));
    return IsVariable(Find(gather.input(0))) && rows != nullptr && rows->op() == "Const" &&
           IsCopied(gather) && AxisOf(gather) >= 0;
  }

  // 0 or 1; -1 for any other axis.
  int AxisOf(const NodeDef& gather) const {
    const NodeDef* const axis = Find(gather.input(2));
    const auto found = axis == nullptr ? std::nullopt : IntegerOf(*axis);
    return found == 0 || found == 1 ? static_cast<int>(*found) : -1;
  }

 private:
  static bool IsCopied(const NodeDef& gather) {
    tensorflow::DataType type = tensorflow::DT_INVALID;
    return GetNodeAttr(gather, "Tparams", &type).ok() && kTypes.Contains(type);
  }

  const NodeDef* Find(const std::string& input) const {
    const NodeDef* const node = view_.Find(input);
    return node == nullptr || feeds_.count(node->name()) > 0 ? nullptr : node;
  }

  // Requires a resource variable, because a reference variable might change its values in place.
  bool IsVariable(const NodeDef* node) const {
    while (node != nullptr && node->op() == "Identity") node = Find(node->input(0));
    if (node == nullptr || node->op() != "ReadVariableOp") return false;
    const NodeDef* const handle = Find(node->input(0));
    return handle != nullptr && handle->op() == "VarHandleOp";
  }

  const std::set<std::string>& feeds_;
  const GraphView view_;
};

void UseOp(int axis, NodeDef* gather) {
  tensorflow::DataType type = tensorflow::DT_INVALID, index = tensorflow::DT_INVALID;
  TF_CHECK_OK(GetNodeAttr(*gather, "Tparams", &type));
  TF_CHECK_OK(GetNodeAttr(*gather, "Tindices", &index));
  gather->set_op(KernelRowsOpName());
  gather->clear_attr();
  gather->mutable_input()->DeleteSubrange(2, 1);  // removes the input `axis`
  tensorflow::AddNodeAttr("T", type, gather);
  tensorflow::AddNodeAttr("Tindices", index, gather);
  tensorflow::AddNodeAttr("axis", axis, gather);
}

}  // namespace

const char* KernelRowsOpName() { return "ColcastKernelRows"; }

absl::StatusOr<int> GatherKernelRowsOnce(const std::set<std::string>& feeds,
                                         tensorflow::GraphDef* graph) {
  const KernelFinder finder(feeds, *graph);
  std::map<NodeDef*, int> axes;
  for (NodeDef& node : *graph->mutable_node()) {
    if (finder.IsFixed(node) && feeds.count(node.name()) == 0) axes[&node] = finder.AxisOf(node);
  }
  for (const auto& [gather, axis] : axes) UseOp(axis, gather);
  return static_cast<int>(axes.size());
}

}  // namespace colcast::engine
