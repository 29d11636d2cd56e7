#include "server/engine/model.h"

#include <set>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/signature.h"
#include "server/engine/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace colcast::engine {

TableMemory TensorFlowModel::tables() const {
  TableMemory memory = table_reader_ == nullptr ? TableMemory() : table_reader_->memory();
  if (table_deltas_ != nullptr) table_deltas_->AddTo(&memory);
  return memory;
}

std::string TensorFlowModel::damage() const {
  return table_reader_ == nullptr ? std::string() : table_reader_->damage();
}

void TensorFlowModel::LogAs(const LogFields& fields) {
  for (const auto& [name, programs] : programs_) programs->LogAs(fields);
}

ModelStats TensorFlowModel::stats() const {
  ModelStats stats;
  for (const auto& [name, programs] : programs_) {
    for (StoreStats& store : programs->stores()) stats.stores.push_back(std::move(store));
    for (ProgramStats& program : programs->counts()) stats.programs.push_back(std::move(program));
  }
  return stats;
}

void TensorFlowModel::Serve() {
  std::set<std::string> declared;
  for (const auto& [name, signature] : saved_signatures_) {
    if (!absl::c_linear_search(options_.unserved_signatures, name)) declared.insert(name);
  }
  for (const std::string& name : declared) {
    const auto number = static_cast<int>(by_number_.size());
    const auto found = programs_.find(name);
    if (found == programs_.end()) {
      served_[name].number = number;
      by_number_.push_back(nullptr);
      continue;
    }
    ServedSignature& served = served_[name];
    served = {absl::OkStatus(), found->second.get(), transcoding_.Find(name), number};
    by_number_.push_back(&served);
  }
}

int TensorFlowModel::FindSignature(std::string_view name) const {
  const auto found = served_.find(name.empty() ? "serving_default" : name);
  return found == served_.end() ? -1 : found->second.number;
}

absl::Status TensorFlowModel::NotServed(std::string_view name) const {
  if (name.empty()) name = "serving_default";
  const auto found = served_.find(name);
  if (found != served_.end() && !found->second.status.ok()) return found->second.status;
  const auto append_name = [](std::string* out, const auto& entry) { out->append(entry.first); };
  return absl::FailedPreconditionError(
      absl::StrCat("Serving signature key \"", name, "\" not found; the model has {",
                   absl::StrJoin(programs_, ", ", append_name), "}"));
}

}  // namespace colcast::engine
