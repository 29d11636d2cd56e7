#include "server/engine/mapping/table_reader_thread.h"

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

void TableReaderThread::CheckAll() {
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

TableMemory TableReaderThread::memory() const {
  TableMemory memory;
  for (const auto& table : tables_->tables()) {
    const auto size = static_cast<int64_t>(table->size);
    memory.mapped += size;
    memory.resident += table->file->Resident(table->offset, table->size);
    if (table->is_checked) memory.checked += size;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  memory.damage = damage_;
  return memory;
}

}  // namespace colcast::engine
