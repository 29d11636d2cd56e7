#include "server/engine/mapping/map_variables.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/engine/in_parallel.h"
#include "server/engine/mapping/mapped_readers.h"
#include "server/engine/mapping/mapped_tables.h"
#include "server/engine/rewrites/table_readers.h"
#include "server/engine/session_resources.h"
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
constexpr char kReference[] = "it is a TensorFlow 1 variable that is no resource";
constexpr char kNoShape[] = "its shape is not known before it is restored";
constexpr char kNotPlain[] =
    "the checkpoint does not have it as one plain tensor, or an op reads that tensor";

// TensorFlow 1 variables that are not resources.
bool IsReference(const NodeDef& node) {
  return node.op() == "VariableV2" || node.op() == "Variable";
}

RefCountPtr<Var> FindVariable(ResourceMgr* resources, const std::string& container,
                              const std::string& name) {
  Var* found = nullptr;
  const std::string& in = container.empty() ? resources->default_container() : container;
  if (!resources->Lookup(in, name, &found).ok()) return nullptr;
  return RefCountPtr<Var>(found);
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

absl::Status CopyIntoMemory(const MappedTable& table, Var* variable) {
  const std::atomic<bool> stop{false};
  Tensor copy;
  {
    const tensorflow::mutex_lock lock(*variable->mu());
    copy = Tensor(variable->tensor()->dtype(), variable->tensor()->shape());
    if (!copy.IsInitialized()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for the ", table.size, " bytes of table ", table.name));
    }
    std::memcpy(copy.data(), table.data(), table.size);
    *variable->tensor() = std::move(copy);
  }
  return CheckBytes(table, stop);
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
  const auto read = absl::c_find_if(initializing.node(), is_initialized_from);
  if (read != initializing.node().end()) {
    KeepInMemory(absl::StrCat("the model's initialization reads \"",
                              TextAttribute(*read, "shared_name"), "\""));
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
    const RefCountPtr<Var> held = FindVariable(*resources, variable.container, variable.name);
    if (held == nullptr) {
      variable.is_restored = variable.why == kReference;
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
  std::vector<Variable*> others;
  for (Variable& variable : variables_) {
    if (variable.mapped == nullptr || variable.why.empty()) continue;
    others.push_back(&variable);
  }
  std::vector<absl::Status> copied(others.size());
  InParallel(others.size(), [&](size_t i) {
    const auto table = std::move(others[i]->mapped);
    const auto held = FindVariable(*resources, others[i]->container, others[i]->name);
    if (held == nullptr) return;
    copied[i] = CopyIntoMemory(*table, held.get());
    tables->Drop(*table);
  });
  for (absl::Status& status : copied) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

void MappedVariables::ReadInInt8(const std::set<std::string>& variables) {
  for (Variable& one : variables_) one.is_read_in_int8 |= variables.count(one.name) > 0;
}

std::vector<ServedTable> MappedVariables::Tables() const {
  std::vector<ServedTable> tables;
  for (const Variable& one : variables_) {
    tables.push_back({one.name, one.why, one.mapped, IsLarge(one), one.is_read_in_int8});
  }
  return tables;
}

std::vector<const void*> MappedVariables::TablesOf(const GraphDef& graph) const {
  std::set<std::string> held;
  for (const NodeDef& node : graph.node()) {
    if (node.op() == "VarHandleOp") held.insert(TextAttribute(node, "shared_name"));
  }
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
