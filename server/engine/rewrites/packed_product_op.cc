#include "server/engine/rewrites/packed_product_op.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/bfloat16_product.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace colcast::engine {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

class Bfloat16ProductOp final : public tensorflow::OpKernel {
 public:
  explicit Bfloat16ProductOp(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("relu", &relu_));
    OP_REQUIRES_OK(construction, construction->GetAttr("makes_nan_zero", &makes_nan_zero_));
    OP_REQUIRES_OK(construction, construction->GetAttr("first_row", &first_row_));
    OP_REQUIRES_OK(construction, construction->GetAttr("depth", &depth_));
    OP_REQUIRES(construction, HasBfloat16Products(),
                absl::UnimplementedError("this CPU has no AVX512-BF16"));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    const Tensor& weights = context->input(1);
    OP_REQUIRES(context, weights.dims() == 2 && first_row_ + depth_ <= weights.dim_size(0),
                absl::InvalidArgumentError(absl::StrCat("Expected ", first_row_ + depth_,
                                                        " rows or more of weights, got ",
                                                        weights.shape().DebugString())));
    OP_REQUIRES(context, x.dims() == 2 && x.dim_size(1) == depth_,
                absl::InvalidArgumentError(
                    absl::StrCat("Matrix size-incompatible: In[0]: ", x.shape().DebugString(),
                                 ", In[1]: [", depth_, ",", weights.dim_size(1), "]")));
    std::vector<const float*> added;
    OP_REQUIRES_OK(context, ReadAdded(context, weights.dim_size(1), &added));
    Tensor* out = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, {x.dim_size(0), weights.dim_size(1)}, &out));
    if (out->NumElements() == 0) return;
    // Processes rows in blocks: the thread keeps the buffer of rounded inputs, whose size must not
    // follow the request's.
    constexpr int64_t kRowsAtOnce = 80 * kRows;
    const std::shared_ptr<const Bfloat16Weights> packed = Packed(weights);
    for (int64_t row = 0; row < x.dim_size(0); row += kRowsAtOnce) {
      const int64_t rows = std::min(kRowsAtOnce, x.dim_size(0) - row);
      float* const first = out->flat<float>().data() + row * weights.dim_size(1);
      packed->Multiply(x.flat<float>().data() + row * depth_, rows, added, relu_, first);
      if (makes_nan_zero_) {
        for (float& value : absl::MakeSpan(first, rows * weights.dim_size(1))) {
          value = value > 0 ? value : 0;
        }
      }
    }
  }

 private:
  static absl::Status ReadAdded(OpKernelContext* context, int64_t width,
                                std::vector<const float*>* added) {
    OpInputList inputs;
    if (absl::Status status = context->input_list("added", &inputs); !status.ok()) return status;
    for (const Tensor& input : inputs) {
      const bool is_row = input.dims() == 1 || (input.dims() == 2 && input.dim_size(0) == 1);
      if (!is_row || input.NumElements() != width) {
        return absl::InvalidArgumentError(
            absl::StrCat("Incompatible shapes: [?,", width, "] vs. ", input.shape().DebugString()));
      }
      added->push_back(input.flat<float>().data());
    }
    return absl::OkStatus();
  }

  std::shared_ptr<const Bfloat16Weights> Packed(const Tensor& weights) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool is_same = packed_ != nullptr && weights.data() == source_.data() &&
                         weights.shape() == source_.shape();
    if (!is_same) {
      const int64_t width = weights.dim_size(1);
      packed_ = std::make_shared<Bfloat16Weights>(weights.flat<float>().data() + first_row_ * width,
                                                  depth_, width);
      source_ = weights;
    }
    return packed_;
  }

  bool relu_ = false;
  bool makes_nan_zero_ = false;
  int64_t first_row_ = 0;
  int64_t depth_ = 0;
  std::mutex mutex_;
  Tensor source_;  // the weights that were packed
  std::shared_ptr<const Bfloat16Weights> packed_;
};

absl::Status ProductShape(tensorflow::shape_inference::InferenceContext* context) {
  tensorflow::shape_inference::ShapeHandle x, weights;
  if (absl::Status status = context->WithRank(context->input(0), 2, &x); !status.ok()) {
    return status;
  }
  if (absl::Status status = context->WithRank(context->input(1), 2, &weights); !status.ok()) {
    return status;
  }
  context->set_output(0, context->Matrix(context->Dim(x, 0), context->Dim(weights, 1)));
  return absl::OkStatus();
}

REGISTER_OP("ColcastBfloat16Product")
    .Input("x: float")
    .Input("weights: float")
    .Input("added: num_added * float")
    .Output("product: float")
    .Attr("num_added: int >= 0")
    .Attr("first_row: int >= 0")
    .Attr("depth: int >= 0")
    .Attr("relu: bool")
    .Attr("makes_nan_zero: bool = false")
    .SetShapeFn(ProductShape);
REGISTER_KERNEL_BUILDER(Name("ColcastBfloat16Product").Device(tensorflow::DEVICE_CPU),
                        Bfloat16ProductOp);

}  // namespace

const char* Bfloat16ProductOpName() { return "ColcastBfloat16Product"; }

}  // namespace colcast::engine
