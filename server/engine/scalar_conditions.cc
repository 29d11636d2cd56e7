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
using tensorflow::Tensor;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

// The condition of a Case must be a scalar; that of an If or While may also be a list of one value.
REGISTER_OP("ScalarCondition")
    .Input("condition: T")
    .Output("scalar: T")
    .Attr("T: type")
    .Attr("or_list_of_one: bool")
    .SetShapeFn(tensorflow::shape_inference::ScalarShape);

class ScalarConditionOp final : public tensorflow::OpKernel {
 public:
  explicit ScalarConditionOp(tensorflow::OpKernelConstruction* construction)
      : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("or_list_of_one", &or_list_of_one_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& condition = context->input(0);
    OP_REQUIRES(context, condition.dims() == 0 || (or_list_of_one_ && condition.NumElements() == 1),
                absl::InvalidArgumentError(
                    absl::StrCat("The second input must be a scalar, but it has shape ",
                                 condition.shape().DebugString())));
    Tensor scalar;
    CHECK(scalar.CopyFrom(condition, tensorflow::TensorShape()));
    context->set_output(0, scalar);
  }
  bool IsExpensive() override { return false; }

 private:
  bool or_list_of_one_ = false;
};

REGISTER_KERNEL_BUILDER(Name("ScalarCondition").Device(tensorflow::DEVICE_CPU), ScalarConditionOp);

bool IsLowered(const NodeDef& node) {
  const auto found = node.attr().find("_lower_using_switch_merge");
  return found != node.attr().end() && found->second.b();
}

template <size_t count>
bool IsOneOf(const NodeDef& node, const std::string_view (&ops)[count]) {
  return std::find(std::begin(ops), std::end(ops), node.op()) != std::end(ops);
}

NodeDef Guard(const std::string& name, DataType type, bool or_list_of_one,
              const std::string& condition) {
  NodeDef guard;
  guard.set_name(absl::StrCat(name, "/scalar_condition"));
  guard.set_op("ScalarCondition");
  guard.add_input(condition);
  (*guard.mutable_attr())["T"].set_type(type);
  (*guard.mutable_attr())["or_list_of_one"].set_b(or_list_of_one);
  return guard;
}

// `output` is the suffix that refers to a node's first output.
void GuardBranches(std::string_view output, Nodes* nodes) {
  static constexpr std::string_view kBranches[] = {"If", "StatelessIf", "Case", "StatelessCase"};
  std::vector<NodeDef> guards;
  for (NodeDef& node : *nodes) {
    if (!IsOneOf(node, kBranches) || !IsLowered(node)) continue;
    const auto type = node.attr().find("Tcond");
    const bool is_if = type != node.attr().end();
    guards.push_back(Guard(node.name(), is_if ? type->second.type() : tensorflow::DT_INT32, is_if,
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
  NodeDef guard = Guard("result", result.type(), /*or_list_of_one=*/true, returned);
  returned = absl::StrCat(guard.name(), ":scalar:0");
  *function->add_node_def() = std::move(guard);
}

}  // namespace

void RequireScalarConditions(tensorflow::GraphDef* graph) {
  std::set<std::string> conditions;
  GuardBranches("", graph->mutable_node());
  FindLoopConditions(graph->node(), &conditions);
  for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
    GuardBranches(":scalar:0", function.mutable_node_def());
    FindLoopConditions(function.node_def(), &conditions);
  }
  for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
    if (conditions.count(function.signature().name()) > 0) GuardResult(&function);
  }
}

}  // namespace colcast::engine
