#include "server/engine/rewrites/int8_tables.h"

#include <mutex>

#include "absl/strings/str_cat.h"

namespace colcast::engine {

using tensorflow::ResourceHandle;
using tensorflow::ResourceMgr;
using tensorflow::Tensor;
using tensorflow::Var;
using tensorflow::core::RefCountPtr;

absl::StatusOr<RefCountPtr<Int8Tables>> Int8Tables::In(ResourceMgr* resources) {
  Int8Tables* found = nullptr;
  const auto make = [](Int8Tables** made) {
    *made = new Int8Tables;
    return absl::OkStatus();
  };
  absl::Status status = resources->LookupOrCreate<Int8Tables>(resources->default_container(),
                                                              "colcast_int8_tables", &found, make);
  if (!status.ok()) return status;
  return RefCountPtr<Int8Tables>(found);
}

absl::StatusOr<std::shared_ptr<const Int8Table>> Int8Tables::Find(const ResourceHandle& variable,
                                                                  ResourceMgr* resources) {
  const Key key(variable.container(), variable.name());
  {
    const std::shared_lock lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second.is_final) return found->second.table;
  }
  Var* found = nullptr;
  absl::Status status = resources->Lookup(key.first, key.second, &found);
  if (!status.ok()) return status;
  const RefCountPtr<Var> held(found);
  return TableOf(key, found);
}

absl::StatusOr<int64_t> Int8Tables::DropFloat32(const std::string& container,
                                                const std::string& name, ResourceMgr* resources) {
  const Key key(container, name);
  Var* found = nullptr;
  absl::Status status = resources->Lookup(container, name, &found);
  if (!status.ok()) return status;
  const RefCountPtr<Var> variable(found);
  const auto table = TableOf(key, found);
  if (!table.ok()) return table.status();
  if (*table == nullptr) return absl::FailedPreconditionError("its values are changed in place");
  const std::unique_lock lock(mutex_);
  Entry& entry = entries_[key];
  const auto bytes = static_cast<int64_t>(entry.source.TotalBytes());
  if (status = resources->Delete<Var>(container, name); !status.ok()) return status;
  entry.source = Tensor();
  entry.is_final = true;
  return bytes;
}

absl::StatusOr<std::shared_ptr<const Int8Table>> Int8Tables::TableOf(const Key& key,
                                                                     Var* variable) {
  const tensorflow::tf_shared_lock lock(*variable->mu());
  if (variable->copy_on_read_mode.load()) return std::shared_ptr<const Int8Table>();
  const Tensor& value = *variable->tensor();
  if (value.dtype() != tensorflow::DT_FLOAT || value.dims() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", key.second, " is ", value.DebugString(0), "; a matrix of float was expected"));
  }
  return Current(key, value);
}

std::shared_ptr<const Int8Table> Int8Tables::Current(const Key& key, const Tensor& value) {
  const auto is_current = [&value](const Entry& entry) {
    return entry.table != nullptr && entry.source.data() == value.data() &&
           entry.source.shape() == value.shape();
  };
  {
    const std::shared_lock lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end() && is_current(found->second)) return found->second.table;
  }
  const std::unique_lock lock(mutex_);
  Entry& entry = entries_[key];
  if (!is_current(entry)) {
    entry.table = std::make_shared<Int8Table>(value.flat<float>().data(), value.dim_size(0),
                                              value.dim_size(1));
    entry.source = value;
  }
  return entry.table;
}

}  // namespace colcast::engine
