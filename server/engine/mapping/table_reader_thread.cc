#include "server/engine/mapping/table_reader_thread.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/log.h"
#include "server/base/machine.h"
#include "server/base/thread.h"
#include "server/engine/status.h"

namespace colcast::engine {

using tables::MappedFile;

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

TableReaderThread::TableReaderThread(tensorflow::core::RefCountPtr<MappedTables> tables,
                                     int64_t available)
    : tables_(ReadWithin(available, std::move(tables))),
      thread_("checks of tables", [this] { Run(); }) {}

TableReaderThread::~TableReaderThread() { stop_.Set(); }

void TableReaderThread::Run() {
  LowerThisThreadsPriority();
  Changes seen;
  for (const auto& table : tables_->tables()) seen[table->file.get()] = table->file->changed();
  CheckAll(seen);
  while (!stop_.WaitFor(std::chrono::seconds(1))) {
    // There is no point in checking a file that is still being written.
    if (!SeeChanges(&seen)) CheckAll(seen);
  }
}

// Marks the tables of files that have changed since `seen` as unchecked, and updates `seen`.
// Returns whether any file has changed. Also detects changes while no request runs.
bool TableReaderThread::SeeChanges(Changes* seen) {
  const Changes before = *seen;
  std::string damage;
  for (const auto& table : tables_->tables()) {
    const MappedFile* const file = table->file.get();
    if ((*seen)[file] == before.at(file)) {
      if (Status status = file->Check(); !status.ok()) damage = std::move(status.message);
      (*seen)[file] = file->changed();
    }
    if ((*seen)[file] != before.at(file)) table->is_checked = false;
  }
  if (!damage.empty()) SetDamage(std::move(damage));
  return *seen != before;
}

void TableReaderThread::CheckAll(const Changes& seen) {
  std::string damage;
  for (const auto& table : tables_->tables()) {
    const absl::Status status = table->is_checked ? absl::OkStatus() : CheckBytes(*table, stop_);
    if (stop_.IsSet()) return;
    if (!status.ok()) damage = std::string(status.message());
  }
  for (const auto& [file, changed] : seen) {
    file->Accept(changed);
    if (Status status = file->Check(); !status.ok()) damage = std::move(status.message);
  }
  SetDamage(std::move(damage));
}

void TableReaderThread::SetDamage(std::string damage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (damage_.empty() && !damage.empty()) LogError(damage);
  if (!damage_.empty() && damage.empty())
    LogInfo("the tables are as they were saved: serves again");
  damage_ = std::move(damage);
}

std::string TableReaderThread::damage() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return damage_;
}

TableMemory TableReaderThread::memory() const {
  TableMemory memory;
  for (const auto& table : tables_->tables()) {
    const auto size = static_cast<int64_t>(table->size);
    memory.mapped += size;
    memory.resident += table->file->Resident(table->offset, table->size);
    if (table->is_checked) memory.checked += size;
  }
  memory.damage = damage();
  return memory;
}

}  // namespace colcast::engine
