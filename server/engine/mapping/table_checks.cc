#include "server/engine/mapping/table_checks.h"

#include <sys/resource.h>

#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/log.h"
#include "server/base/machine.h"
#include "server/base/thread.h"
#include "server/engine/status.h"

namespace colcast::engine {

using tables::MappedFile;

absl::Status LockTables(const MappedTables& tables) {
  int64_t bytes = 0, missing = 0;
  for (const auto& table : tables.tables()) {
    const auto size = static_cast<int64_t>(table->size);
    bytes += size;
    missing += size - table->file->Resident(table->offset, table->size);
  }
  const auto refused = [&](const std::string& why) {
    struct rlimit limit = {};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return absl::ResourceExhaustedError(
        absl::StrCat("--lock_tables needs ", bytes,
                     " bytes for the model's mapped tables (the process may lock ", limit.rlim_cur,
                     ", `ulimit -l`): ", why));
  };
  if (const int64_t available = AvailableMemory(); missing > available) {
    return refused(absl::StrCat(missing, " are not in memory yet, and ", available, " are left"));
  }
  for (const auto& table : tables.tables()) {
    if (table->is_locked) continue;
    Status status = table->file->Lock(table->offset, table->size);
    if (!status.ok()) return refused(status.message);
    table->is_locked = true;
  }
  return absl::OkStatus();
}

namespace {

// Returns the tables, with read-ahead turned off if they exceed `available` bytes.
tensorflow::core::RefCountPtr<MappedTables> ReadWithin(
    int64_t available, tensorflow::core::RefCountPtr<MappedTables> tables) {
  int64_t bytes = 0;
  for (const auto& table : tables->tables()) bytes += static_cast<int64_t>(table->size);
  if (bytes > available) {
    for (const auto& table : tables->tables()) table->file->ReadSparingly();
  }
  return tables;
}

}  // namespace

TableChecks::TableChecks(tensorflow::core::RefCountPtr<MappedTables> tables, int64_t available)
    : tables_(ReadWithin(available, std::move(tables))),
      thread_("checks of tables", [this] { Run(); }) {}

TableChecks::~TableChecks() { stop_.Set(); }

void TableChecks::Run() {
  LowerThisThreadsPriority();
  std::map<const MappedFile*, int64_t> touched;
  for (const auto& table : tables_->tables()) touched[table->file.get()] = table->file->touched();
  CheckAll();
  while (!stop_.WaitFor(std::chrono::seconds(1))) {
    tables_->Check().IgnoreError();  // detects a change while no request runs
    for (const auto& table : tables_->tables()) {
      int64_t& seen = touched[table->file.get()];
      if (table->file->touched() != seen) table->is_checked = false;
    }
    for (auto& [file, times] : touched) times = file->touched();
    CheckAll();
  }
}

void TableChecks::CheckAll() {
  std::string damage;
  for (const auto& table : tables_->tables()) {
    absl::Status status =
        table->is_checked ? ToAbsl(table->file->Check()) : CheckBytes(*table, stop_);
    if (stop_.IsSet()) return;
    if (!status.ok()) damage = std::string(status.message());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (damage_.empty() && !damage.empty()) LogError(damage);
  damage_ = std::move(damage);
}

TableMemory TableChecks::memory() const {
  TableMemory memory;
  for (const auto& table : tables_->tables()) {
    const auto size = static_cast<int64_t>(table->size);
    memory.mapped += size;
    memory.resident += table->file->Resident(table->offset, table->size);
    if (table->is_locked) memory.locked += size;
    if (table->is_checked) memory.checked += size;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  memory.damage = damage_;
  return memory;
}

}  // namespace colcast::engine
