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
  return shape.num_elements() * tensorflow::DataTypeSize(type);
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
                                 int64_t least_bytes) {
  const std::set<std::string> followed = VariablesOf(model);
  std::set<std::pair<std::string, std::string>> seen, large;
  const auto add = [&](const NodeDef& node) {
    if (node.op() != "VarHandleOp" || BytesOf(node) == 0) return;
    Variable one;
    one.container = TextAttribute(node, "container");
    one.name = TextAttribute(node, "shared_name");
    if (followed.count(one.name) == 0) one.why = kNotFollowed;
    if (BytesOf(node) < least_bytes) {
      one.why =
          absl::StrCat("it has ", BytesOf(node), " bytes; --map_tables_min_bytes is ", least_bytes);
    } else {
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
  if (absl::c_any_of(initializing.node(), is_initialized_from)) {
    for (Variable& variable : variables_)
      variable.why = "a table is read while the model is loaded";
  }
}

bool MappedVariables::any() const {
  return absl::c_any_of(variables_, [](const Variable& one) { return one.why.empty(); });
}

bool MappedVariables::Find(tensorflow::Session* session) {
  const auto tables = MappedTables::Of(session);
  const absl::StatusOr<ResourceMgr*> resources = ResourcesOf(session);
  if (tables == nullptr || !resources.ok()) return true;
  std::set<const MappedTable*> found;
  for (Variable& variable : variables_) {
    const RefCountPtr<Var> held = FindVariable(*resources, variable.container, variable.name);
    if (held == nullptr) continue;
    const tensorflow::tf_shared_lock lock(*held->mu());
    const auto table = tables->Find(*held->tensor());
    if (table == nullptr) continue;
    found.insert(table.get());
    variable.was_mapped = true;
    variable.mapped = table;
    if (variable.why.empty()) mapped_.insert(variable.name);
  }
  return found.size() == tables->tables().size();
}

void MappedVariables::Read(const std::string& signature, const tensorflow::SignatureDef& declared,
                           GraphDef* graph) {
  const MappedReaders readers = GatherMapped(mapped_, declared, graph);
  for (Variable& variable : variables_) {
    variable.is_gathered |= readers.gathered.count(variable.name) > 0;
    const auto other = readers.others.find(variable.name);
    if (other == readers.others.end() || !variable.why.empty()) continue;
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
    std::string why = one.why;
    if (one.mapped == nullptr && why.empty()) why = "its values in the checkpoint are not plain";
    tables.push_back({one.name, std::move(why), one.mapped, one.is_gathered, one.is_read_in_int8});
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
    if (!variable.was_mapped) continue;
    if (variable.why.empty()) {
      ++count;
      bytes += static_cast<int64_t>(variable.mapped->size);
    } else if (variable.is_gathered) {
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
