#include "server/engine/mapping/gather_op.h"

#include <numeric>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/rewrites/lookup_rows.h"
#include "server/engine/rewrites/lookup_tables.h"
#include "server/tables/overlay.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace colcast::engine {
namespace {

using tensorflow::NodeDef;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// One op takes a table, the other a variable's handle. Like ResourceGather, the latter is stateful,
// so that functions keep its reads in order with writes.
constexpr char kGather[] = "ColcastGather";
constexpr char kResourceGather[] = "ColcastResourceGather";

absl::Span<const int64_t> AsInt64(const Tensor& indices, std::vector<int64_t>* converted) {
  if (indices.dtype() == tensorflow::DT_INT64) {
    return {indices.flat<int64_t>().data(), static_cast<size_t>(indices.NumElements())};
  }
  const auto* const first = indices.flat<int32_t>().data();
  converted->assign(first, first + indices.NumElements());
  return *converted;
}

// A sum by segment gathers a row per id up to this many bytes, otherwise a row per distinct id.
constexpr int64_t kMostRepeated = int64_t{16} << 20;

// Sets `positions` to each id's position among the distinct ids, and returns the distinct ids.
template <typename T>
std::vector<int64_t> Distinct(absl::Span<const int64_t> ids, T* positions) {
  std::vector<int64_t> distinct;
  absl::flat_hash_map<int64_t, T> known;
  for (const int64_t id : ids) {
    const auto [found, is_new] = known.try_emplace(id, static_cast<T>(distinct.size()));
    if (is_new) distinct.push_back(id);
    *positions++ = found->second;
  }
  return distinct;
}

class GatherOp final : public tensorflow::OpKernel {
 public:
  explicit GatherOp(tensorflow::OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("T", &type_));
  }

  void Compute(OpKernelContext* context) override {
    Tensor table;
    OP_REQUIRES_OK(context, ReadTable(context, &table));
    const Tensor& indices = context->input(1);
    std::vector<int64_t> converted;
    absl::Span<const int64_t> ids = AsInt64(indices, &converted);
    OP_REQUIRES_OK(context, CheckIds(ids, table.dim_size(0), indices.shape(), 0, name()));
    TensorShape shape = indices.shape();
    if (num_outputs() > 1) {
      Tensor* positions = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(1, indices.shape(), &positions));
      const int64_t row_bytes = ids.empty() ? 0 : table.TotalBytes() / table.dim_size(0);
      if (indices.dtype() == tensorflow::DT_INT64) {
        SetPositions<int64_t>(row_bytes, positions, &ids, &converted);
      } else {
        SetPositions<int32_t>(row_bytes, positions, &ids, &converted);
      }
      shape = {static_cast<int64_t>(ids.size())};
    }
    for (int dim = 1; dim < table.dims(); ++dim) {
      OP_REQUIRES_OK(context, shape.AddDimWithStatus(table.dim_size(dim)));
    }
    Tensor* rows = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &rows));
    if (ids.empty()) return;
    if (const auto* const changed = tables::ReadsGeneration::Of(table.data())) {
      if (ids.data() != converted.data()) converted.assign(ids.begin(), ids.end());
      changed->Redirect(converted.data(), converted.size());
      ids = converted;
    }
    const size_t width = rows->TotalBytes() / ids.size();
    GatherRows(static_cast<const char*>(table.data()), width, ids,
               {static_cast<char*>(rows->data()), width});
  }

 private:
  // Sets each id's position among the output's rows, and `*ids` to the ids of these rows.
  template <typename T>
  static void SetPositions(int64_t row_bytes, Tensor* positions, absl::Span<const int64_t>* ids,
                           std::vector<int64_t>* kept) {
    T* const first = positions->flat<T>().data();
    if (static_cast<int64_t>(ids->size()) * row_bytes <= kMostRepeated) {
      std::iota(first, first + ids->size(), T{0});
    } else {
      *kept = Distinct(*ids, first);
      *ids = *kept;
    }
  }

  absl::Status ReadTable(OpKernelContext* context, Tensor* table) {
    absl::Status status = variables_.Read(context, 0, context->input(0), table);
    if (!status.ok()) return status;
    if (table->dtype() != type_ || table->dims() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("params must be at least 1 dimensional and of ", DataTypeString(type_),
                       ", and is ", table->DebugString(0)));
    }
    return absl::OkStatus();
  }

  tensorflow::DataType type_;
  TableVariables variables_{1};
};

template <bool kByHandle>
absl::Status GatherShape(InferenceContext* context) {
  ShapeHandle table = context->input(0);
  if (kByHandle) {
    const auto* const handle = context->input_handle_shapes_and_types(0);
    table = handle == nullptr || handle->empty() ? context->UnknownShape() : handle->front().shape;
  }
  ShapeHandle row, rows;
  absl::Status status = context->WithRankAtLeast(table, 1, &table);
  if (status.ok()) status = context->Subshape(table, 1, &row);
  const bool has_positions = context->num_outputs() > 1;
  const ShapeHandle first =
      has_positions ? context->Vector(InferenceContext::kUnknownDim) : context->input(1);
  if (status.ok()) status = context->Concatenate(first, row, &rows);
  if (!status.ok()) return status;
  context->set_output(0, rows);
  if (has_positions) context->set_output(1, context->input(1));
  return absl::OkStatus();
}

REGISTER_OP(kGather)
    .Input("table: T")
    .Input("indices: Tindices")
    .Output("output: T")
    .Output("positions: num_positions * Tindices")
    .Attr("num_positions: int >= 0 = 0")
    .Attr("Tindices: {int32, int64}")
    .Attr("T: type")
    .SetShapeFn(GatherShape<false>);
REGISTER_OP(kResourceGather)
    .Input("table: resource")
    .Input("indices: Tindices")
    .Output("output: T")
    .Output("positions: num_positions * Tindices")
    .Attr("num_positions: int >= 0 = 0")
    .Attr("Tindices: {int32, int64}")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(GatherShape<true>);
REGISTER_KERNEL_BUILDER(Name(kGather).Device(tensorflow::DEVICE_CPU), GatherOp);
REGISTER_KERNEL_BUILDER(Name(kResourceGather).Device(tensorflow::DEVICE_CPU), GatherOp);

tensorflow::DataType TypeOf(const NodeDef& node, const char* attribute) {
  tensorflow::DataType type = tensorflow::DT_INVALID;
  TF_CHECK_OK(tensorflow::GetNodeAttr(node, attribute, &type));
  return type;
}

}  // namespace

bool IsMappedGather(const NodeDef& node) {
  return node.op() == kGather || node.op() == kResourceGather;
}

void MakeMappedGather(NodeDef* node) {
  const bool by_handle = node->op() == "ResourceGather";
  const tensorflow::DataType type = TypeOf(*node, by_handle ? "dtype" : "Tparams");
  const tensorflow::DataType indices = TypeOf(*node, "Tindices");
  if (node->op() == "GatherV2") node->mutable_input()->DeleteSubrange(2, 1);  // removes the axis
  node->set_op(by_handle ? kResourceGather : kGather);
  node->clear_attr();
  tensorflow::AddNodeAttr("Tindices", indices, node);
  tensorflow::AddNodeAttr("T", type, node);
}

void SumGathered(bool is_in_function, NodeDef* gather, NodeDef* sum) {
  (*gather->mutable_attr())["num_positions"].set_i(1);
  sum->set_input(0, absl::StrCat(gather->name(), is_in_function ? ":output:0" : ":0"));
  sum->set_input(1, absl::StrCat(gather->name(), is_in_function ? ":positions:0" : ":1"));
  (*sum->mutable_attr())["Tidx"].set_type(TypeOf(*gather, "Tindices"));
}

}  // namespace colcast::engine
