#include "server/engine/rewrites/needed_graph.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/rewrites/rewrites.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::TensorInfo;

void AddTensors(const TensorInfo& info, std::vector<std::string>* names) {
  const auto add = [names](const std::string& name) {
    if (!name.empty()) names->push_back(name);
  };
  add(info.name());
  add(info.coo_sparse().values_tensor_name());
  add(info.coo_sparse().indices_tensor_name());
  add(info.coo_sparse().dense_shape_tensor_name());
  for (const TensorInfo& part : info.composite_tensor().components()) AddTensors(part, names);
}

std::string VariableName(const NodeDef& variable) {
  std::string name;
  TryGetNodeAttr(variable, "shared_name", &name);
  return name;
}

// Whether the node is a grouped lookup that reads the table at this input in int8.
bool ReadsInInt8(const NodeDef& node, int input) {
  std::vector<int32_t> tables;
  std::vector<tensorflow::DataType> columns;
  if (node.op() != GroupedLookupOpName() || !TryGetNodeAttr(node, "int8_tables", &tables) ||
      !GetNodeAttr(node, "columns_types", &columns).ok()) {
    return false;
  }
  return absl::c_linear_search(tables, input - static_cast<int>(columns.size()));
}

// Whether the variable has a name in the default container.
bool HasOwnName(const NodeDef& variable) {
  std::string container;
  TryGetNodeAttr(variable, "container", &container);
  return container.empty() && !VariableName(variable).empty();
}

}  // namespace

std::vector<std::string> TensorsOf(const tensorflow::SignatureDef& declared) {
  std::vector<std::string> names = OutputsOf(declared);
  for (const auto& [alias, info] : declared.inputs()) AddTensors(info, &names);
  return names;
}

std::vector<std::string> OutputsOf(const tensorflow::SignatureDef& declared) {
  std::vector<std::string> names;
  for (const auto& [alias, info] : declared.outputs()) AddTensors(info, &names);
  return names;
}

std::optional<std::vector<int64_t>> IntegersOf(const tensorflow::Tensor& tensor) {
  const auto elements = [&](const auto* first) {
    return std::vector<int64_t>(first, first + tensor.NumElements());
  };
  if (tensor.dtype() == tensorflow::DT_INT64) return elements(tensor.flat<int64_t>().data());
  if (tensor.dtype() == tensorflow::DT_INT32) return elements(tensor.flat<int32_t>().data());
  return std::nullopt;
}

std::optional<int64_t> IntegerOf(const NodeDef& constant) {
  tensorflow::Tensor value;
  if (constant.op() != "Const" || !GetNodeAttr(constant, "value", &value).ok() ||
      value.NumElements() != 1) {
    return std::nullopt;
  }
  const auto integers = IntegersOf(value);
  return integers.has_value() ? std::make_optional(integers->front()) : std::nullopt;
}

bool HasDenseOutputs(const tensorflow::SignatureDef& declared) {
  return absl::c_all_of(declared.outputs(), [](const auto& output) {
    return output.second.encoding_case() == TensorInfo::kName;
  });
}

void MoveWaits(const std::map<std::string, std::string>& moved, NodeDef* node) {
  std::set<std::string> seen;
  std::vector<std::string> kept;
  for (const std::string& input : node->input()) {
    const auto found = moved.find(input);
    const std::string& now = found == moved.end() ? input : found->second;
    if (now.front() != '^' || seen.insert(now).second) kept.push_back(now);
  }
  node->clear_input();
  for (std::string& input : kept) node->add_input(std::move(input));
}

GraphView::GraphView(const Nodes& nodes) : all_(nodes) {
  for (const NodeDef& node : nodes) nodes_[node.name()] = &node;
}

const NodeDef* GraphView::Find(std::string_view tensor) const {
  const auto found = nodes_.find(NodeOf(tensor));
  return found == nodes_.end() ? nullptr : found->second;
}

std::set<const NodeDef*> GraphView::Ancestors(std::vector<std::string> tensors,
                                              const Follows& follows) const {
  std::set<const NodeDef*> seen;
  while (!tensors.empty()) {
    const NodeDef* const node = Find(tensors.back());
    tensors.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (int i = 0; i < node->input_size(); ++i) {
      if (follows == nullptr || follows(*node, i)) tensors.push_back(node->input(i));
    }
  }
  return seen;
}

const std::vector<GraphView::Reader>& GraphView::ReadersOf(const std::string& name) const {
  static const auto& kNone = *new std::vector<Reader>();
  if (readers_.empty()) {
    for (const NodeDef& node : all_) {
      for (int i = 0; i < node.input_size(); ++i) {
        if (absl::StartsWith(node.input(i), "^")) break;  // control inputs come last
        readers_[NodeOf(node.input(i))].push_back({&node, i});
      }
    }
  }
  const auto found = readers_.find(name);
  return found == readers_.end() ? kNone : found->second;
}

std::set<const NodeDef*> GraphView::Descendants(std::vector<const NodeDef*> nodes) const {
  std::map<const NodeDef*, std::vector<const NodeDef*>> readers;
  for (const NodeDef& node : all_) {
    for (const std::string& input : node.input()) readers[Find(input)].push_back(&node);
  }
  std::set<const NodeDef*> seen;
  while (!nodes.empty()) {
    const NodeDef* const node = nodes.back();
    nodes.pop_back();
    if (!seen.insert(node).second) continue;
    nodes.insert(nodes.end(), readers[node].begin(), readers[node].end());
  }
  return seen;
}

NeededGraphs::NeededGraphs(const GraphDef& whole)
    : whole_(whole), functions_(tensorflow::OpRegistry::Global(), whole.library()), view_(whole) {}

absl::StatusOr<GraphDef> NeededGraphs::Of(std::vector<std::string> names) const {
  const std::set<const NodeDef*> found = view_.Ancestors(names);
  for (const NodeDef* const node : found)
    names.insert(names.end(), node->input().begin(), node->input().end());
  for (const std::string& name : names) {
    if (view_.Find(name) != nullptr) continue;
    return absl::NotFoundError(
        absl::StrCat("the model's graph has no node \"", NodeOf(name), "\""));
  }
  GraphDef needed;
  for (const NodeDef& node : whole_.node()) {
    if (found.count(&node) == 0) continue;
    *needed.add_node() = node;
    // A colocation might name a node that is not needed; with one device it has no effect.
    needed.mutable_node()->rbegin()->mutable_attr()->erase("_class");
  }
  *needed.mutable_library() = functions_.ReachableDefinitions(needed).ToProto();
  *needed.mutable_versions() = whole_.versions();
  return needed;
}

TablesRead ReadBy(const GraphDef& graph, const tensorflow::SignatureDef& declared) {
  const GraphView view(graph);
  TablesRead read;
  const auto follows = [&](const NodeDef& node, int input) {
    if (!ReadsInInt8(node, input)) return true;
    const NodeDef* const table = view.Find(node.input(input));
    if (table != nullptr) read.int8.insert(VariableName(*table));
    return false;
  };
  for (const NodeDef* const node : view.Ancestors(OutputsOf(declared), follows)) {
    if (node->op() == "VarHandleOp") read.float32.insert(VariableName(*node));
  }
  return read;
}

std::set<std::string> VariablesOf(const GraphDef& graph) {
  std::map<std::string, int> handles;
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) {
      // Adds 2, which excludes the variable: any caller of the function may read it.
      if (node.op() == "VarHandleOp") handles[VariableName(node)] += 2;
    }
  }
  for (const NodeDef& node : graph.node()) {
    if (node.op() == "VarHandleOp") handles[VariableName(node)] += HasOwnName(node) ? 1 : 2;
  }
  std::set<std::string> variables;
  for (const auto& [name, count] : handles) {
    if (count == 1) variables.insert(name);
  }
  return variables;
}

}  // namespace colcast::engine
