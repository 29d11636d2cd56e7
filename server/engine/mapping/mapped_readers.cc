#include "server/engine/mapping/mapped_readers.h"

#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/mapping/gather_op.h"
#include "server/engine/rewrites/lookup_op.h"
#include "server/engine/rewrites/needed_graph.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace colcast::engine {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

// A graph, or the body of a function.
struct Scope {
  std::map<std::string, const NodeDef*> nodes;
  // the readers of each node or argument
  std::map<std::string, std::vector<std::pair<NodeDef*, int>>> readers;
  std::set<std::string> results;  // nodes or arguments whose values leave the scope
};

Scope ScopeOf(Nodes* nodes) {
  Scope scope;
  for (NodeDef& node : *nodes) {
    scope.nodes[node.name()] = &node;
    for (int i = 0; i < node.input_size(); ++i) {
      const std::string& input = node.input(i);
      if (!absl::StartsWith(input, "^")) scope.readers[NodeOf(input)].emplace_back(&node, i);
    }
  }
  return scope;
}

// The variable that a node or argument holds.
struct Held {
  std::string variable;
  bool is_value = false;  // otherwise it holds the handle
};

bool HasZero(const NodeDef& node, const char* attribute) {
  int64_t value = 0;
  TryGetNodeAttr(node, attribute, &value);
  return value == 0;
}

bool IsZero(const Scope& scope, const std::string& input) {
  const auto found = scope.nodes.find(NodeOf(input));
  tensorflow::Tensor value;
  if (found == scope.nodes.end() || found->second->op() != "Const" ||
      !GetNodeAttr(*found->second, "value", &value).ok() || value.NumElements() != 1) {
    return false;
  }
  return value.dtype() == tensorflow::DT_INT32   ? value.flat<int32_t>()(0) == 0
         : value.dtype() == tensorflow::DT_INT64 ? value.flat<int64_t>()(0) == 0
                                                 : false;
}

bool GathersRows(const Scope& scope, const NodeDef& node, bool is_value) {
  if (!HasZero(node, "batch_dims")) return false;
  if (!is_value) return node.op() == "ResourceGather";
  return node.op() == "Gather" || (node.op() == "GatherV2" && IsZero(scope, node.input(2)));
}

// TensorFlow fuses a gather with a following segment sum into one op, which reads the whole table.
bool IsSummedBySegment(const Scope& scope, const std::string& rows) {
  const auto found = scope.readers.find(rows);
  return found != scope.readers.end() && absl::c_any_of(found->second, [&](const auto& reader) {
           const NodeDef& node = *reader.first;
           return absl::StartsWith(node.op(), "SparseSegment") ||
                  (node.op() == "Identity" && IsSummedBySegment(scope, node.name()));
         });
}

bool IsGroupedTable(const NodeDef& node, int input) {
  std::vector<tensorflow::DataType> columns, tables;
  if (node.op() != GroupedLookupOpName() || !GetNodeAttr(node, "columns_types", &columns).ok() ||
      !GetNodeAttr(node, "tables_types", &tables).ok()) {
    return false;
  }
  const int position = input - static_cast<int>(columns.size());
  return position >= 0 && position < static_cast<int>(tables.size());
}

bool ReadsTheShape(const NodeDef& node, bool is_value) {
  return is_value ? node.op() == "Shape" || node.op() == "Size" || node.op() == "Rank"
                  : node.op() == "VariableShape" || node.op() == "VarIsInitializedOp";
}

class Walk {
 public:
  explicit Walk(tensorflow::GraphDef* graph) {
    for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
      functions_[function.signature().name()] = &function;
    }
  }

  void Follow(const Scope& scope, const std::string& holder, const Held& held) {
    if (scope.results.count(holder) > 0) Note(held, "it is an output");
    const auto readers = scope.readers.find(holder);
    if (readers == scope.readers.end()) return;
    for (const auto& [reader, input] : readers->second) Read(scope, held, reader, input);
  }

  std::map<std::string, std::string> others;

 private:
  void Read(const Scope& scope, const Held& held, NodeDef* reader, int input) {
    const std::string& op = reader->op();
    if (op == "Identity") {
      Follow(scope, reader->name(), held);
    } else if (op == "ReadVariableOp" && !held.is_value) {
      Follow(scope, reader->name(), {held.variable, true});
    } else if (input == 0 && GathersRows(scope, *reader, held.is_value)) {
      if (IsSummedBySegment(scope, reader->name())) {
        Note(held, absl::StrCat(op, " ", reader->name(), ", summed by segment"));
      } else {
        MakeMappedGather(reader);
      }
    } else if (const FunctionDef* const called = CalledBy(*reader); called != nullptr) {
      Enter(called->signature().name(), input, held);
    } else if (!IsGroupedTable(*reader, input) && !(input == 0 && IsMappedGather(*reader)) &&
               !ReadsTheShape(*reader, held.is_value)) {
      Note(held, absl::StrCat(op, " ", reader->name()));
    }
  }

  // The function that the node calls with its own inputs, in order; null if there is none.
  const FunctionDef* CalledBy(const NodeDef& node) const {
    std::string name = node.op();
    if (name == "PartitionedCall" || name == "StatefulPartitionedCall") {
      const auto f = node.attr().find("f");
      if (f == node.attr().end()) return nullptr;
      name = f->second.func().name();
    }
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  }

  void Enter(const std::string& name, int argument, const Held& held) {
    if (!entered_.insert({name, argument, held.variable, held.is_value}).second) return;
    FunctionDef* const function = functions_.at(name);
    if (argument >= function->signature().input_arg_size()) return Note(held, name);
    // Functions with lists of tensors as arguments are not traced.
    for (const auto& arg : function->signature().input_arg()) {
      if (!arg.number_attr().empty() || !arg.type_list_attr().empty()) return Note(held, name);
    }
    Scope body = ScopeOf(function->mutable_node_def());
    for (const auto& [output, tensor] : function->ret()) body.results.insert(NodeOf(tensor));
    Follow(body, function->signature().input_arg(argument).name(), held);
  }

  void Note(const Held& held, const std::string& reader) { others.emplace(held.variable, reader); }

  std::map<std::string, FunctionDef*> functions_;
  std::set<std::tuple<std::string, int, std::string, bool>> entered_;
};

}  // namespace

std::map<std::string, std::string> GatherMapped(const std::set<std::string>& variables,
                                                const tensorflow::SignatureDef& declared,
                                                tensorflow::GraphDef* graph) {
  if (variables.empty()) return {};
  Scope main = ScopeOf(graph->mutable_node());
  for (const std::string& tensor : TensorsOf(declared)) main.results.insert(NodeOf(tensor));
  Walk walk(graph);
  for (const auto& [node, handle] : main.nodes) {
    std::string name;
    if (handle->op() != "VarHandleOp" || !TryGetNodeAttr(*handle, "shared_name", &name)) continue;
    if (variables.count(name) > 0) walk.Follow(main, node, {name, false});
  }
  return std::move(walk.others);
}

}  // namespace colcast::engine
