#include "server/engine/mapping/map_variables.h"

#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/engine/in_parallel.h"
#include "server/engine/mapping/gather_op.h"
#include "server/engine/mapping/mapped_tables.h"
#include "server/engine/rewrites/needed_graph.h"
#include "server/engine/session_resources.h"
#include "tensorflow/cc/saved_model/constants.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_var.h"

namespace colcast::engine {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::ResourceMgr;
using tensorflow::Tensor;
using tensorflow::Var;
using tensorflow::core::RefCountPtr;

constexpr char kNotFollowed[] = "several nodes, or a function, hold it";
constexpr char kReference[] = "it is a TensorFlow 1 reference variable";
constexpr char kNoShape[] = "its shape is not known before it is restored";
constexpr char kNotPlain[] =
    "the checkpoint does not have it as one plain tensor, or an op reads that tensor";

// Whether the node is a TensorFlow 1 variable that is not a resource.
bool IsReference(const NodeDef& node) {
  return node.op() == "VariableV2" || node.op() == "Variable";
}

// The variable's size in bytes; 0 if its shape does not determine it.
int64_t BytesOf(const NodeDef& variable) {
  tensorflow::DataType type;
  tensorflow::PartialTensorShape shape;
  if (!GetNodeAttr(variable, "dtype", &type).ok() || !GetNodeAttr(variable, "shape", &shape).ok() ||
      !shape.IsFullyDefined()) {
    return 0;
  }
  return shape.num_elements() * tensorflow::DataTypeSize(tensorflow::BaseType(type));
}

std::string TextAttribute(const NodeDef& node, const char* name) {
  std::string value;
  TryGetNodeAttr(node, name, &value);
  return value;
}

std::set<std::string> HandlesIn(const GraphDef& graph) {
  std::set<std::string> held;
  for (const NodeDef& node : graph.node()) {
    if (node.op() == "VarHandleOp") held.insert(TextAttribute(node, "shared_name"));
  }
  return held;
}

// Returns a node that reads a variable for which `is_one` is true, or null. Ignores reads that only
// initialize another variable, which then shares the tensor: no byte is read.
const NodeDef* ReaderIn(const GraphDef& graph, const std::function<bool(const NodeDef&)>& is_one) {
  const GraphView view(graph);
  const auto is_assigned = [](const GraphView::Reader& reader) {
    return reader.node->op() == "AssignVariableOp" && reader.input == 1;
  };
  for (const NodeDef& node : graph.node()) {
    if (node.op() != "VarHandleOp" || !is_one(node)) continue;
    for (const auto& [reader, input] : view.ReadersOf(node.name())) {
      const bool is_written = reader->op() == "AssignVariableOp" && input == 0;
      const bool is_passed_on = reader->op() == "ReadVariableOp" &&
                                absl::c_all_of(view.ReadersOf(reader->name()), is_assigned);
      if (!is_written && !is_passed_on) return reader;
    }
  }
  return nullptr;
}

// Copies a mapped table into memory for the variables that share it.
absl::Status CopyIntoMemory(const MappedTable& table,
                            const std::vector<RefCountPtr<Var>>& variables) {
  Tensor copy(table.dtype, table.shape);
  if (!copy.IsInitialized()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the ", table.size, " bytes of table ", table.name));
  }
  std::memcpy(copy.data(), table.data(), table.size);
  for (const RefCountPtr<Var>& variable : variables) {
    const tensorflow::mutex_lock lock(*variable->mu());
    *variable->tensor() = copy;
  }
  return CheckBytes(table, StopFlag());
}

}  // namespace

MappedVariables::MappedVariables(const GraphDef& model, const GraphDef& initializing,
                                 int64_t least_bytes)
    : least_bytes_(least_bytes) {
  const std::set<std::string> followed = VariablesOf(model);
  std::set<std::pair<std::string, std::string>> seen, large;
  const auto add = [&](const NodeDef& node) {
    if (node.op() != "VarHandleOp" && !IsReference(node)) return;
    Variable one;
    one.container = TextAttribute(node, "container");
    one.name = TextAttribute(node, "shared_name");
    one.bytes = BytesOf(node);
    if (IsReference(node)) {
      if (one.name.empty()) one.name = node.name();
      one.why = kReference;
    } else if (one.bytes == 0) {
      one.why = kNoShape;
    } else if (one.bytes < least_bytes) {
      one.why =
          absl::StrCat("it has ", one.bytes, " bytes; --map_tables_min_bytes is ", least_bytes);
    } else if (followed.count(one.name) == 0) {
      one.why = kNotFollowed;
    }
    if (one.why != kReference && (one.bytes == 0 || one.bytes >= least_bytes)) {
      large.insert({one.container, one.name});
    }
    if (seen.insert({one.container, one.name}).second) variables_.push_back(std::move(one));
  };
  for (const NodeDef& node : model.node()) add(node);
  for (const auto& function : model.library().function()) {
    for (const NodeDef& node : function.node_def()) add(node);
  }
  const auto is_initialized_from = [&](const NodeDef& node) {
    return large.count({TextAttribute(node, "container"), TextAttribute(node, "shared_name")}) > 0;
  };
  if (const NodeDef* const reader = ReaderIn(initializing, is_initialized_from)) {
    KeepInMemory(absl::StrCat("the model's initialization reads a table by ", reader->op(), " ",
                              reader->name()));
  }
}

void MappedVariables::KeepInMemory(const std::string& why) {
  for (Variable& variable : variables_) {
    variable.mapped = nullptr;
    if (variable.why.empty()) variable.why = why;
  }
  mapped_.clear();
}

bool MappedVariables::any() const {
  return absl::c_any_of(variables_, [](const Variable& one) { return one.why.empty(); });
}

bool MappedVariables::Find(tensorflow::Session* session) {
  const auto tables = MappedTables::Of(session);
  const absl::StatusOr<ResourceMgr*> resources = ResourcesOf(session);
  if (!resources.ok()) return true;
  std::set<const MappedTable*> found;
  for (Variable& variable : variables_) {
    const RefCountPtr<Var> held = FindResource<Var>(*resources, variable.name, variable.container);
    if (held == nullptr) {  // nothing restores it
      if (variable.why != kReference) variable.bytes = 0;
      continue;
    }
    const tensorflow::tf_shared_lock lock(*held->mu());
    variable.bytes = static_cast<int64_t>(held->tensor()->TotalBytes());
    if (tables != nullptr) variable.mapped = tables->Find(*held->tensor());
    if (variable.mapped != nullptr) {
      found.insert(variable.mapped.get());
      if (variable.why.empty()) mapped_.insert(variable.name);
    } else if (variable.why.empty()) {
      variable.why = kNotPlain;
    }
  }
  return tables == nullptr || found.size() == tables->tables().size();
}

void MappedVariables::Read(const std::string& signature, const tensorflow::SignatureDef& declared,
                           GraphDef* graph) {
  // Skips the init op: it has already run, and reads mapped variables only to initialize others.
  if (signature == tensorflow::kSavedModelInitOpSignatureKey) return;
  const std::map<std::string, std::string> readers = GatherMapped(mapped_, declared, graph);
  for (Variable& variable : variables_) {
    const auto other = readers.find(variable.name);
    if (other == readers.end() || !variable.why.empty()) continue;
    variable.why = absl::StrCat("signature \"", signature, "\" reads it by ", other->second);
  }
}

absl::Status MappedVariables::CopyOthers(tensorflow::Session* session) {
  const auto tables = MappedTables::Of(session);
  const absl::StatusOr<ResourceMgr*> resources = ResourcesOf(session);
  if (!resources.ok()) return resources.status();
  std::map<std::shared_ptr<const MappedTable>, std::string> whys;
  for (const Variable& variable : variables_) {
    if (variable.mapped != nullptr && !variable.why.empty()) whys[variable.mapped] = variable.why;
  }
  const std::vector<std::pair<std::shared_ptr<const MappedTable>, std::string>> others(whys.begin(),
                                                                                       whys.end());
  std::vector<std::vector<RefCountPtr<Var>>> held(others.size());
  for (size_t i = 0; i < others.size(); ++i) {
    for (Variable& variable : variables_) {
      if (variable.mapped != others[i].first) continue;
      if (variable.why.empty()) variable.why = others[i].second;
      variable.mapped = nullptr;
      held[i].push_back(FindResource<Var>(*resources, variable.name, variable.container));
    }
  }
  std::vector<absl::Status> copied(others.size());
  InParallel(others.size(), [&](size_t i) {
    copied[i] = CopyIntoMemory(*others[i].first, held[i]);
    tables->Drop(*others[i].first);
  });
  for (absl::Status& status : copied) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

void MappedVariables::DropFreed(tensorflow::Session* session) {
  const auto tables = MappedTables::Of(session);
  const absl::StatusOr<ResourceMgr*> resources = ResourcesOf(session);
  if (tables == nullptr || !resources.ok()) return;
  std::set<std::shared_ptr<const MappedTable>> read;
  for (Variable& one : variables_) {
    if (one.mapped == nullptr) continue;
    one.is_freed = FindResource<Var>(*resources, one.name, one.container) == nullptr;
    if (!one.is_freed) read.insert(one.mapped);
  }
  for (const Variable& one : variables_) {
    if (one.is_freed && read.count(one.mapped) == 0) tables->Drop(*one.mapped);
  }
}

std::vector<ServedTable> MappedVariables::Tables() const {
  std::vector<ServedTable> tables;
  for (const Variable& one : variables_) {
    tables.push_back({one.name, one.why, one.mapped, IsLarge(one)});
  }
  return tables;
}

std::vector<const void*> MappedVariables::TablesOf(const GraphDef& graph) const {
  const std::set<std::string> held = HandlesIn(graph);
  std::vector<const void*> tables;
  for (const Variable& one : variables_) {
    if (one.mapped != nullptr && held.count(one.name) > 0) tables.push_back(one.mapped->data());
  }
  return tables;
}

std::vector<std::string> MappedVariables::notes() const {
  std::vector<std::string> notes;
  int count = 0;
  int64_t bytes = 0;
  for (const Variable& variable : variables_) {
    if (variable.is_freed) continue;
    if (variable.mapped != nullptr) {
      ++count;
      bytes += variable.bytes;
    } else if (IsLarge(variable)) {
      notes.push_back(
          absl::StrCat("table \"", variable.name, "\" is in memory, not mapped: ", variable.why));
    }
  }
  if (count > 0) {
    notes.push_back(absl::StrFormat("%d table%s of %.3g GB mapped from the checkpoint", count,
                                    count == 1 ? "" : "s", static_cast<double>(bytes) * 1e-9));
  }
  return notes;
}

}  // namespace colcast::engine
