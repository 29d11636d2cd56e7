#include "server/engine/rewrites/kernel_rows.h"

#include <map>

#include "server/engine/rewrites/kernel_rows_op.h"
#include "server/engine/rewrites/node_name.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"

namespace colcast::engine {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

class Finder {
 public:
  Finder(const std::set<std::string>& feeds, const tensorflow::GraphDef& graph) {
    for (const NodeDef& node : graph.node()) {
      if (feeds.count(node.name()) == 0) by_name_[node.name()] = &node;
    }
  }

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
    Tensor value;
    if (axis == nullptr || axis->op() != "Const" || !GetNodeAttr(*axis, "value", &value).ok() ||
        value.dtype() != tensorflow::DT_INT32 || value.NumElements() != 1) {
      return -1;
    }
    const int found = value.flat<int32_t>()(0);
    return found == 0 || found == 1 ? found : -1;
  }

 private:
  static bool IsCopied(const NodeDef& gather) {
    tensorflow::DataType type = tensorflow::DT_INVALID;
    return GetNodeAttr(gather, "Tparams", &type).ok() && KernelRowsTypes().Contains(type);
  }

  const NodeDef* Find(const std::string& input) const {
    const auto found = by_name_.find(NodeOf(input));
    return found == by_name_.end() ? nullptr : found->second;
  }

  // A resource variable: a reference variable might change its values in place.
  bool IsVariable(const NodeDef* node) const {
    while (node != nullptr && node->op() == "Identity") node = Find(node->input(0));
    if (node == nullptr || node->op() != "ReadVariableOp") return false;
    const NodeDef* const handle = Find(node->input(0));
    return handle != nullptr && handle->op() == "VarHandleOp";
  }

  std::map<std::string, const NodeDef*> by_name_;
};

void UseOp(int axis, NodeDef* gather) {
  tensorflow::DataType type = tensorflow::DT_INVALID, index = tensorflow::DT_INVALID;
  TF_CHECK_OK(GetNodeAttr(*gather, "Tparams", &type));
  TF_CHECK_OK(GetNodeAttr(*gather, "Tindices", &index));
  gather->set_op(KernelRowsOpName());
  gather->clear_attr();
  gather->mutable_input()->DeleteSubrange(2, 1);  // removes the axis
  tensorflow::AddNodeAttr("T", type, gather);
  tensorflow::AddNodeAttr("Tindices", index, gather);
  tensorflow::AddNodeAttr("axis", axis, gather);
}

}  // namespace

absl::StatusOr<int> GatherKernelRowsOnce(const std::set<std::string>& feeds,
                                         tensorflow::GraphDef* graph) {
  const Finder finder(feeds, *graph);
  std::map<NodeDef*, int> axes;
  for (NodeDef& node : *graph->mutable_node()) {
    if (finder.IsFixed(node) && feeds.count(node.name()) == 0) axes[&node] = finder.AxisOf(node);
  }
  for (const auto& [gather, axis] : axes) UseOp(axis, gather);
  return static_cast<int>(axes.size());
}

}  // namespace colcast::engine
