#include "server/engine/rewrites/rewrites.h"

#ifdef __x86_64__
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/base/scratch.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/bfloat16.h"

// Enables newer instructions for individual functions, because the engine must run on every CPU
// that TensorFlow's wheel supports.
#define COLCAST_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace colcast::engine {

namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// The tile of an output matrix that is computed in registers.
constexpr int kLanes = 16;                       // sums per vector
constexpr int kVectors = 4;                      // vectors per row of a block
constexpr int64_t kColumns = kVectors * kLanes;  // columns per block
// Rows whose sums for one block fit into registers.
constexpr int kRows = 6;

// A block of the output's columns. Packed weights are 0 beyond the last column.
struct ProductBlock {
  // The block that begins at `column` of a matrix with `width` columns. Each of `added` has one
  // value per column.
  ProductBlock(int64_t column, int64_t width, absl::Span<const float* const> added) {
    const int64_t columns = std::min(kColumns, width - column);
    for (const float* const values : added) {
      for (int64_t i = 0; i < columns; ++i) start[i] += values[column + i];
    }
    for (int v = 0; v < kVectors; ++v) {
      masks[v] =
          static_cast<uint16_t>((1u << std::clamp<int64_t>(columns - v * kLanes, 0, kLanes)) - 1);
    }
  }

  float start[kColumns] = {};  // the sum of the added rows, to which products are added
  uint16_t masks[kVectors];    // one bit per column, set if it exists
};

// Rounds a row and pads it with 0 to an even number of values.
COLCAST_BFLOAT16 void RoundRow(const float* row, int64_t depth, uint16_t* rounded) {
  int64_t i = 0;
  for (; i + kLanes <= depth; i += kLanes) {
    const __m256bh half = _mm512_cvtneps_pbh(_mm512_loadu_ps(row + i));
    std::memcpy(rounded + i, &half, sizeof(half));
  }
  if (i == depth) return;
  const auto rest = static_cast<__mmask16>((1u << (depth - i)) - 1);
  const __m256bh half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(rest, row + i));
  std::memcpy(rounded + i, &half, (depth - i + 1) / 2 * 2 * sizeof(uint16_t));
}

// Computes kCount rows of a block of the output. The output is `width` wide; each row of `inputs`
// has `pairs` pairs of values.
template <int kCount>
COLCAST_BFLOAT16 void MultiplyRows(const uint16_t* inputs, int64_t pairs, const uint16_t* weights,
                                   const ProductBlock& block, bool relu, float* out,
                                   int64_t width) {
  __m512 sums[kCount][kVectors];
  for (int row = 0; row < kCount; ++row) {
    for (int v = 0; v < kVectors; ++v) sums[row][v] = _mm512_loadu_ps(block.start + v * kLanes);
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    __m512bh columns[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = (__m512bh)_mm512_loadu_si512(weights + (pair * kVectors + v) * 2 * kLanes);
    }
    for (int row = 0; row < kCount; ++row) {
      int32_t both;
      std::memcpy(&both, inputs + 2 * (row * pairs + pair), sizeof(both));
      const auto repeated = (__m512bh)_mm512_set1_epi32(both);
      for (int v = 0; v < kVectors; ++v) {
        sums[row][v] = _mm512_dpbf16_ps(sums[row][v], repeated, columns[v]);
      }
    }
  }
  const __m512 least = relu ? _mm512_setzero_ps() : _mm512_set1_ps(-__builtin_inff());
  for (int row = 0; row < kCount; ++row) {
    for (int v = 0; v < kVectors; ++v) {
      // Keeps NaN: for operands that cannot be compared, max returns the second.
      _mm512_mask_storeu_ps(out + row * width + v * kLanes, block.masks[v],
                            _mm512_maskz_max_ps(block.masks[v], least, sums[row][v]));
    }
  }
}

void MultiplyBlock(const uint16_t* inputs, int64_t rows, int64_t pairs, const uint16_t* weights,
                   const ProductBlock& block, bool relu, float* out, int64_t width) {
  constexpr decltype(&MultiplyRows<1>) kMultiply[] = {MultiplyRows<1>, MultiplyRows<2>,
                                                      MultiplyRows<3>, MultiplyRows<4>,
                                                      MultiplyRows<5>, MultiplyRows<6>};
  for (int64_t row = 0; row < rows; row += kRows) {
    const auto count = std::min<int64_t>(kRows, rows - row);
    kMultiply[count - 1](inputs + 2 * pairs * row, pairs, weights, block, relu, out + row * width,
                         width);
  }
}

class Bfloat16Weights {
 public:
  // Rounds a row-major matrix, `depth` rows of `width` values, to the nearest bfloat16.
  Bfloat16Weights(const float* weights, int64_t depth, int64_t width)
      : depth_(depth), width_(width) {
    const int64_t blocks = (width + kColumns - 1) / kColumns;
    packed_.assign(blocks * pairs() * 2 * kColumns, 0);
    for (int64_t row = 0; row < depth; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        const auto rounded = static_cast<tensorflow::bfloat16>(weights[row * width + column]);
        const int64_t pair = column / kColumns * pairs() + row / 2;
        std::memcpy(&packed_[(pair * kColumns + column % kColumns) * 2 + row % 2], &rounded,
                    sizeof(rounded));
      }
    }
  }

  // Computes out = activation(inputs * weights + the sum of `added`). Inputs, `rows` rows of
  // `depth` values, are rounded to bfloat16; sums are float32; each of `added` has one value per
  // column. A row's result does not depend on the other rows. `out` must not overlap anything.
  void Multiply(const float* inputs, int64_t rows, absl::Span<const float* const> added, bool relu,
                float* out) const {
    thread_local std::vector<uint16_t> rounded;
    const FreeIfLarge free_rounded(&rounded);
    rounded.resize(rows * pairs() * 2);
    for (int64_t row = 0; row < rows; ++row) {
      RoundRow(inputs + row * depth_, depth_, rounded.data() + row * pairs() * 2);
    }
    for (int64_t column = 0; column < width_; column += kColumns) {
      MultiplyBlock(rounded.data(), rows, pairs(), packed_.data() + column * pairs() * 2,
                    ProductBlock(column, width_, added), relu, out + column, width_);
    }
  }

 private:
  int64_t pairs() const { return (depth_ + 1) / 2; }

  const int64_t depth_;
  const int64_t width_;
  // Ordered by block of columns, then by pair of rows, then by column. The two values of a pair are
  // adjacent.
  std::vector<uint16_t> packed_;
};

// The op ColcastBfloat16Product: a MatMul and the ops after it, with weights that are rounded and
// packed. It exists only in the server; a SavedModel never contains it.
//
// Inputs: `x` [rows, depth]; `weights`, a matrix whose rows [first_row, first_row + depth) are
// used; `added`, each [width] or [1, width]; all float32. Attributes: `first_row`, `depth`, `relu`,
// and `makes_nan_zero` for the Relu. Output: activation(x * weights + the sum of `added`).
//
// The first run packs the weights, and so does the first run after an update of the variable. The
// op keeps a reference to the tensor that it packed, so TensorFlow cannot change the values in
// place, and an update creates another tensor. Errors are those of MatMul and BiasAdd.
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
    // Processes rows in blocks, because the thread keeps the buffer of rounded inputs, which must
    // not grow with the request.
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
  TF_RETURN_IF_ERROR(context->WithRank(context->input(0), 2, &x));
  TF_RETURN_IF_ERROR(context->WithRank(context->input(1), 2, &weights));
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

bool HasBfloat16Products() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bf16");
}

}  // namespace colcast::engine

#else

namespace colcast::engine {

bool HasBfloat16Products() { return false; }

}  // namespace colcast::engine

#endif

namespace colcast::engine {

const char* Bfloat16ProductOpName() { return "ColcastBfloat16Product"; }

}  // namespace colcast::engine
