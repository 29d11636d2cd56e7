#include "server/engine/scalar_conditions.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using tensorflow::OpKernelContext;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

constexpr char kOp[] = "RequireScalarCondition";

REGISTER_OP(kOp)
    .Input("condition: T")
    .Output("same: T")
    .Attr("T: type")
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape);

class RequireScalarConditionOp final : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const tensorflow::Tensor& condition = context->input(0);
    OP_REQUIRES(context, condition.dims() == 0,
                absl::InvalidArgumentError(
                    absl::StrCat("The second input must be a scalar, but it has shape ",
                                 condition.shape().DebugString())));
    context->set_output(0, condition);
  }
  bool IsExpensive() override { return false; }
};

REGISTER_KERNEL_BUILDER(Name(kOp).Device(tensorflow::DEVICE_CPU), RequireScalarConditionOp);

bool IsLowered(const NodeDef& node) {
  const auto found = node.attr().find("_lower_using_switch_merge");
  return found != node.attr().end() && found->second.b();
}

template <size_t count>
bool IsOneOf(const NodeDef& node, const std::string_view (&ops)[count]) {
  return std::find(std::begin(ops), std::end(ops), node.op()) != std::end(ops);
}

NodeDef Guard(const std::string& name, DataType type, const std::string& condition) {
  NodeDef guard;
  guard.set_name(absl::StrCat(name, "/scalar_condition"));
  guard.set_op(kOp);
  guard.add_input(condition);
  (*guard.mutable_attr())["T"].set_type(type);
  return guard;
}

// `output`: what follows a node's name where its first output is read.
void GuardBranches(std::string_view output, Nodes* nodes) {
  static constexpr std::string_view kBranches[] = {"If", "StatelessIf", "Case", "StatelessCase"};
  std::vector<NodeDef> guards;
  for (NodeDef& node : *nodes) {
    if (!IsOneOf(node, kBranches) || !IsLowered(node)) continue;
    const auto type = node.attr().find("Tcond");
    guards.push_back(Guard(node.name(),
                           type == node.attr().end() ? tensorflow::DT_INT32 : type->second.type(),
                           node.input(0)));
    node.set_input(0, absl::StrCat(guards.back().name(), output));
  }
  for (NodeDef& guard : guards) *nodes->Add() = std::move(guard);
}

void FindLoopConditions(const Nodes& nodes, std::set<std::string>* functions) {
  static constexpr std::string_view kLoops[] = {"While", "StatelessWhile"};
  for (const NodeDef& node : nodes) {
    if (!IsOneOf(node, kLoops) || !IsLowered(node)) continue;
    functions->insert(node.attr().at("cond").func().name());
  }
}

void GuardResult(FunctionDef* function) {
  const auto& result = function->signature().output_arg(0);
  std::string& returned = (*function->mutable_ret())[result.name()];
  NodeDef guard = Guard("result", result.type(), returned);
  returned = absl::StrCat(guard.name(), ":same:0");
  *function->add_node_def() = std::move(guard);
}

}  // namespace

void RequireScalarConditions(tensorflow::GraphDef* graph) {
  std::set<std::string> conditions;
  GuardBranches("", graph->mutable_node());
  FindLoopConditions(graph->node(), &conditions);
  for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
    GuardBranches(":same:0", function.mutable_node_def());
    FindLoopConditions(function.node_def(), &conditions);
  }
  for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
    if (conditions.count(function.signature().name()) > 0) GuardResult(&function);
  }
}

}  // namespace colcast::engine
