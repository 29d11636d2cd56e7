#include <algorithm>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/engine/mapping/mapped_tables.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/saved_tensor_slice_util.h"

namespace colcast::engine {
namespace {

using tensorflow::BundleReader;
using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

constexpr char kOp[] = "ColcastRestore";

class RestoreOp final : public tensorflow::OpKernel {
 public:
  explicit RestoreOp(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("dtypes", &types_));
    OP_REQUIRES_OK(construction, construction->GetAttr("mapped", &mapped_));
    OP_REQUIRES_OK(construction, construction->GetAttr("least_bytes", &least_bytes_));
  }

  void Compute(OpKernelContext* context) override {
    try {
      Restore(context);
    } catch (const std::bad_alloc&) {  // TensorFlow trusts the sizes in an index
      const std::string prefix = context->input(0).flat<tensorflow::tstring>()(0);
      context->CtxFailure(absl::DataLossError(
          absl::StrCat("no memory for the sizes that ", prefix, ".index claims: is it damaged?")));
    }
  }

 private:
  void Restore(OpKernelContext* context) {
    const std::string prefix = context->input(0).flat<tensorflow::tstring>()(0);
    const auto names = context->input(1).flat<tensorflow::tstring>();
    OP_REQUIRES(context,
                names.size() == num_outputs() && context->input(2).NumElements() == names.size(),
                absl::InvalidArgumentError("expected as many names and slices as outputs"));
    BundleReader checkpoint(tensorflow::Env::Default(), prefix);
    OP_REQUIRES_OK(context, checkpoint.status());
    const auto tables = MappedTables::In(context->resource_manager());
    OP_REQUIRES_OK(context, tables.status());
    std::vector<int> order(names.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return names(a) < names(b); });
    for (const int i : order) {
      absl::StatusOr<bool> mapped = false;
      Tensor tensor;
      if (std::find(mapped_.begin(), mapped_.end(), i) != mapped_.end()) {
        mapped =
            (*tables)->Map(&checkpoint, prefix, names(i), Slice(context, i), least_bytes_, &tensor);
      }
      OP_REQUIRES_OK(context, mapped.status());
      if (!*mapped) {
        OP_REQUIRES_OK(context, Read(names(i), types_[i], Slice(context, i), &checkpoint, &tensor));
      }
      OP_REQUIRES_OK(context, CheckType(names(i), types_[i], tensor.dtype()));
      context->set_output(i, tensor);
    }
  }

  static std::string Slice(OpKernelContext* context, int i) {
    return context->input(2).flat<tensorflow::tstring>()(i);
  }

  static absl::Status CheckType(const std::string& name, DataType expected, DataType stored) {
    if (stored == expected) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("tensor_name = ", name, "; expected dtype ", DataTypeString(expected),
                     " does not equal original dtype ", DataTypeString(stored)));
  }

  static absl::Status Allocate(const std::string& name, DataType type, const TensorShape& shape,
                               Tensor* tensor) {
    *tensor = Tensor(type, shape);
    if (tensor->IsInitialized()) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for tensor ", name, " of shape ", shape.DebugString()));
  }

  static absl::Status Read(const std::string& name, DataType expected,
                           const std::string& slice_text, BundleReader* checkpoint,
                           Tensor* tensor) {
    DataType type;
    TensorShape shape;
    absl::Status status = checkpoint->LookupDtypeAndShape(name, &type, &shape);
    // TensorFlow would abort on a damaged type.
    if (status.ok()) status = CheckType(name, expected, type);
    if (!status.ok()) return status;
    if (slice_text.empty()) {
      status = Allocate(name, type, shape, tensor);
      return status.ok() ? checkpoint->Lookup(name, tensor) : status;
    }
    TensorShape whole, part;
    tensorflow::TensorSlice slice;
    status = tensorflow::checkpoint::ParseShapeAndSlice(slice_text, &whole, &slice, &part);
    if (!status.ok()) return status;
    if (!whole.IsSameSize(shape)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor_name = ", name, "; shape in shape_and_slice spec ", whole.DebugString(),
          " does not match the shape stored in checkpoint: ", shape.DebugString()));
    }
    status = Allocate(name, type, part, tensor);
    return status.ok() ? checkpoint->LookupSlice(name, slice, tensor) : status;
  }

  tensorflow::DataTypeVector types_;
  std::vector<int> mapped_;
  int64_t least_bytes_ = 0;
};

REGISTER_OP(kOp)
    .Input("prefix: string")
    .Input("tensor_names: string")
    .Input("shape_and_slices: string")
    .Output("tensors: dtypes")
    .Attr("dtypes: list(type)")
    .Attr("mapped: list(int)")
    .Attr("least_bytes: int")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape);
REGISTER_KERNEL_BUILDER(Name(kOp).Device(tensorflow::DEVICE_CPU), RestoreOp);

// Maps each tensor ("node:0", in functions too) to its readers and their input indices.
using Readers = std::map<std::string, std::vector<std::pair<const NodeDef*, int>>>;

std::string TensorOf(const std::string& input) {
  int index = 0;
  const size_t colon = input.rfind(':');
  if (colon != std::string::npos && !absl::SimpleAtoi(input.substr(colon + 1), &index)) index = 0;
  return absl::StrCat(NodeOf(input), ":", index);
}

// Whether the tensor is used only as the value of a single variable.
bool OnlyBecomesAVariable(const Readers& readers, const std::string& tensor) {
  const auto found = readers.find(tensor);
  if (found == readers.end() || found->second.size() != 1) return false;
  const auto& [node, input] = found->second.front();
  if (node == nullptr) return false;
  if (node->op() == "AssignVariableOp") return input == 1;
  return node->op() == "Identity" &&
         OnlyBecomesAVariable(readers, absl::StrCat(node->name(), ":0"));
}

// `returned` lists the tensors that a function returns.
void MapRestoredIn(int64_t least_bytes, const std::vector<std::string>& returned, Nodes* nodes) {
  Readers readers;
  for (const NodeDef& node : *nodes) {
    for (int i = 0; i < node.input_size(); ++i) {
      if (!absl::StartsWith(node.input(i), "^"))
        readers[TensorOf(node.input(i))].emplace_back(&node, i);
    }
  }
  for (const std::string& tensor : returned) readers[TensorOf(tensor)].emplace_back(nullptr, 0);
  for (NodeDef& node : *nodes) {
    tensorflow::DataTypeVector types;
    if (node.op() != "RestoreV2" || !GetNodeAttr(node, "dtypes", &types).ok()) continue;
    std::vector<int> mapped;
    for (int i = 0; i < static_cast<int>(types.size()); ++i) {
      if (OnlyBecomesAVariable(readers, absl::StrCat(node.name(), ":", i))) mapped.push_back(i);
    }
    node.set_op(kOp);
    tensorflow::AddNodeAttr("mapped", mapped, &node);
    tensorflow::AddNodeAttr("least_bytes", least_bytes, &node);
  }
}

}  // namespace

void MapRestored(int64_t least_bytes, tensorflow::GraphDef* graph) {
  MapRestoredIn(least_bytes, {}, graph->mutable_node());
  for (auto& function : *graph->mutable_library()->mutable_function()) {
    std::vector<std::string> returned;
    for (const auto& [name, tensor] : function.ret()) returned.push_back(tensor);
    MapRestoredIn(least_bytes, returned, function.mutable_node_def());
  }
}

}  // namespace colcast::engine
