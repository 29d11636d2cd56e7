#include "server/engine/rewrites/rounded_tables.h"

#include <iterator>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/resource_var.h"

namespace colcast::engine {

using tensorflow::DataType;
using tensorflow::ResourceMgr;
using tensorflow::Tensor;
using tensorflow::Var;
using tensorflow::core::RefCountPtr;

absl::StatusOr<RefCountPtr<RoundedTables>> RoundedTables::In(ResourceMgr* resources) {
  RoundedTables* found = nullptr;
  const auto make = [](RoundedTables** made) {
    *made = new RoundedTables;
    return absl::OkStatus();
  };
  absl::Status status = resources->LookupOrCreate<RoundedTables>(
      resources->default_container(), "colcast_rounded_tables", &found, make);
  if (!status.ok()) return status;
  return RefCountPtr<RoundedTables>(found);
}

absl::StatusOr<std::shared_ptr<const RoundedTable>> RoundedTables::Find(
    const std::string& container, const std::string& variable, DataType row_type,
    ResourceMgr* resources) {
  const auto key = std::make_tuple(container, variable, row_type);
  {
    const std::shared_lock lock(mutex_);
    const auto found = tables_.find(key);
    if (found != tables_.end()) return found->second;
  }
  Var* found = nullptr;
  absl::Status status = resources->Lookup(container, variable, &found);
  if (!status.ok()) return status;
  const RefCountPtr<Var> held(found);
  const std::unique_lock lock(mutex_);
  const tensorflow::tf_shared_lock value_lock(*found->mu());
  const Tensor& value = *found->tensor();
  if (value.dtype() != tensorflow::DT_FLOAT || value.dims() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("table ", variable, " is ", value.DebugString(0),
                                                   "; a matrix of float was expected"));
  }
  if (const auto made = tables_.find(key); made != tables_.end()) return made->second;
  auto table = std::make_shared<const RoundedTable>(
      row_type, static_cast<const float*>(value.data()), value.dim_size(0), value.dim_size(1));
  tables_.emplace(key, table);  // last, because making the table may throw
  return table;
}

void RoundedTables::Add(const std::string& container, const std::string& variable,
                        std::shared_ptr<const RoundedTable> table) {
  const std::unique_lock lock(mutex_);
  tables_.emplace(std::make_tuple(container, variable, table->type()), table);
}

void RoundedTables::KeepOnly(const RowTypes& variables) {
  const std::unique_lock lock(mutex_);
  for (auto table = tables_.begin(); table != tables_.end();) {
    table =
        variables.count(std::get<1>(table->first)) > 0 ? std::next(table) : tables_.erase(table);
  }
}

}  // namespace colcast::engine
