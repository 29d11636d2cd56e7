#include "server/engine/rewrites/float32_tables.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/engine/rewrites/rounded_tables.h"
#include "server/engine/session_resources.h"
#include "tensorflow/core/framework/resource_var.h"

namespace colcast::engine {
namespace {

using tensorflow::DataType;
using tensorflow::ResourceMgr;
using tensorflow::Var;

// Returns NOT_FOUND for a variable that was never initialized.
absl::StatusOr<int64_t> DropVariable(const std::string& name, ResourceMgr* resources) {
  Var* found = nullptr;
  absl::Status status = resources->Lookup(resources->default_container(), name, &found);
  if (!status.ok()) return status;
  const tensorflow::core::RefCountPtr<Var> variable(found);
  status = resources->Delete<Var>(resources->default_container(), name);
  if (!status.ok()) return status;
  const tensorflow::tf_shared_lock lock(*variable->mu());
  return static_cast<int64_t>(variable->tensor()->TotalBytes());
}

// Totals for a note.
struct Dropped {
  int count = 0;
  int64_t bytes = 0;

  void Add(int64_t more) {
    ++count;
    bytes += more;
  }
  std::string Say(const char* what, const std::string& how) const {
    return absl::StrFormat("%d %s%s %s: %.3g GB freed", count, what, count == 1 ? "" : "s", how,
                           static_cast<double>(bytes) * 1e-9);
  }
};

}  // namespace

absl::Status MakeRoundedTables(const RowTypes& variables, tensorflow::Session* session) {
  if (variables.empty()) return absl::OkStatus();
  const absl::StatusOr<ResourceMgr*> resources = ResourcesOf(session);
  if (!resources.ok()) return resources.status();
  const auto tables = RoundedTables::In(*resources);
  if (!tables.ok()) return tables.status();
  for (const auto& [name, type] : variables) {
    absl::Status status =
        (*tables)->Find((*resources)->default_container(), name, type, *resources).status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<std::string> DropUnread(const std::map<std::string, TablesRead>& served,
                                    const std::set<std::string>& variables,
                                    tensorflow::Session* session) {
  const absl::StatusOr<ResourceMgr*> found = ResourcesOf(session);
  if (!found.ok()) return {};
  ResourceMgr* const resources = *found;
  RowTypes tables;
  // For each variable read in float32, a signature that reads it.
  std::map<std::string, std::string> readers;
  for (const auto& [signature, read] : served) {
    tables.insert(read.rounded.begin(), read.rounded.end());
    for (const std::string& variable : read.float32) readers.emplace(variable, signature);
  }
  std::vector<std::string> notes;
  std::map<DataType, Dropped> rounded;
  Dropped unread;
  std::map<std::string, int> kept;  // number of tables by reason
  if (const auto forms = RoundedTables::In(resources); forms.ok()) (*forms)->KeepOnly(tables);
  for (const std::string& name : variables) {
    if (tables.count(name) > 0 || readers.count(name) > 0) continue;
    if (const auto freed = DropVariable(name, resources); freed.ok()) unread.Add(*freed);
  }
  for (const auto& [name, type] : tables) {
    std::string why;
    if (const auto reader = readers.find(name); reader != readers.end()) {
      why = absl::StrCat("signature \"", reader->second, "\" reads float32");
    } else if (const auto freed = DropVariable(name, resources); freed.ok()) {
      rounded[type].Add(*freed);
    } else {
      why = std::string(freed.status().message());
    }
    if (!why.empty()) ++kept[why];
  }
  for (const auto& [why, count] : kept) {
    notes.push_back(absl::StrCat(count, count == 1 ? " table stays" : " tables stay",
                                 " in float32 as well: ", why));
  }
  for (const auto& [type, all] : rounded) {
    notes.push_back(all.Say("table", absl::StrCat("in ", DataTypeString(type), " alone")));
  }
  if (unread.count > 0) notes.push_back(unread.Say("variable", "that no signature reads"));
  return notes;
}

TablesInUse::TablesInUse(const tensorflow::MetaGraphDef& model,
                         const std::vector<std::string>& unserved)
    : variables_(VariablesOf(model.graph_def())) {
  std::vector<tensorflow::SignatureDef> served;
  for (const auto& [name, signature] : model.signature_def()) {
    if (absl::c_linear_search(unserved, name)) continue;
    served.push_back(signature);
    saved_[name] = ReadBy(model.graph_def(), signature);
  }
  only_looked_up_ = TablesOnlyLookedUp(model.graph_def(), served);
}

void TablesInUse::Serve(const std::string& signature, const TablesRead* form) {
  served_[signature] = form == nullptr ? saved_[signature] : *form;
}

}  // namespace colcast::engine
