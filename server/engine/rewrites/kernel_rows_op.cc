#include "server/engine/rewrites/kernel_rows_op.h"

#include <cstring>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace colcast::engine {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

std::vector<int64_t> Positions(const Tensor& rows) {
  if (rows.dtype() == tensorflow::DT_INT64) {
    const auto flat = rows.flat<int64_t>();
    return {flat.data(), flat.data() + flat.size()};
  }
  const auto flat = rows.flat<int32_t>();
  return {flat.data(), flat.data() + flat.size()};
}

class KernelRowsOp final : public tensorflow::OpKernel {
 public:
  explicit KernelRowsOp(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("axis", &axis_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& kernel = context->input(0);
    const std::lock_guard<std::mutex> lock(mutex_);
    // An empty kernel has the data and the shape of a source_ that was never set.
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
    const std::vector<int64_t> positions = Positions(rows);
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

}  // namespace

tensorflow::DataTypeSet KernelRowsTypes() {
  using tensorflow::ToSet;
  return ToSet(tensorflow::DT_FLOAT) | ToSet(tensorflow::DT_DOUBLE) | ToSet(tensorflow::DT_HALF) |
         ToSet(tensorflow::DT_BFLOAT16) | ToSet(tensorflow::DT_INT32) | ToSet(tensorflow::DT_INT64);
}

const char* KernelRowsOpName() { return "ColcastKernelRows"; }

}  // namespace colcast::engine
