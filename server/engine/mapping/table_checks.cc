#include "server/engine/mapping/table_checks.h"

#include <chrono>
#include <map>
#include <utility>

#include "server/base/log.h"
#include "server/base/thread_priority.h"
#include "server/engine/status.h"

namespace colcast::engine {

using tables::MappedFile;

TableChecks::TableChecks(tensorflow::core::RefCountPtr<MappedTables> tables, bool lock)
    : tables_(std::move(tables)), thread_("checks of tables", [this, lock] { Run(lock); }) {}

TableChecks::~TableChecks() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
}

void TableChecks::Run(bool lock) {
  LowerThisThreadsPriority();
  std::map<const MappedFile*, int64_t> touched;
  for (const auto& table : tables_->tables()) touched[table->file.get()] = table->file->touched();
  if (lock) {
    for (const auto& [file, times] : touched) {
      if (Status status = file->Lock(); !status.ok()) LogError(status.message);
    }
  }
  CheckAll();
  while (!WaitToStop()) {
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
    if (stop_) return;
    if (!status.ok()) damage = std::string(status.message());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (damage_.empty() && !damage.empty()) LogError(damage);
  damage_ = std::move(damage);
}

bool TableChecks::WaitToStop() {
  std::unique_lock<std::mutex> lock(mutex_);
  return stopping_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_.load(); });
}

TableMemory TableChecks::memory() const {
  TableMemory memory;
  for (const auto& table : tables_->tables()) {
    const auto size = static_cast<int64_t>(table->size);
    memory.mapped += size;
    memory.resident += table->file->Resident(table->offset, table->size);
    if (table->file->locked()) memory.locked += size;
    if (table->is_checked) memory.checked += size;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  memory.damage = damage_;
  return memory;
}

}  // namespace colcast::engine
