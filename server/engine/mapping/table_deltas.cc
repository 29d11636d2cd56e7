#include "server/engine/mapping/table_deltas.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/base/log.h"
#include "server/wire/data_type.h"

namespace colcast::engine {
namespace {

using tables::Generation;
using tables::Overlay;
using tables::RowDelta;

constexpr std::chrono::seconds kPollWait(1);

std::string FolderOf(const std::string& directory) { return directory + "/deltas"; }

}  // namespace

TableDeltas::TableDeltas(const std::string& directory, std::vector<ServedTable> tables)
    : directory_(directory), tables_(std::move(tables)), now_(std::make_shared<Generation>()) {
  Poll();
  const Status status = poller_->Add(
      kPollWait, [this] { Poll(); }, &job_);
  if (!status.ok()) LogError(status.message + "; tables of " + directory + " stay as they are");
}

tables::GenerationPtr TableDeltas::now() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return now_;
}

void TableDeltas::Poll() {
  before_.erase(std::remove_if(before_.begin(), before_.end(),
                               [](const auto& one) { return one.use_count() == 1; }),
                before_.end());
  const Status status = files_.UseDeltas(FolderOf(directory_), now()->deltas,
                                         [this](auto* file) { return Apply(file); });
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!status.ok() && status.message != error_) LogWarning("delta of a table: " + status.message);
  error_ = status.message;
}

Status TableDeltas::Apply(tables::Safetensors* file) {
  if (checkpoint_.empty()) {
    std::string index;  // contains a checksum of each tensor
    Status read = ReadFile(directory_ + "/variables/variables.index", &index);
    if (!read.ok()) return read;
    checkpoint_ = tables::ChecksumOf(index);
  }
  RowDelta delta;
  const MappedTable* table = nullptr;
  Status status = tables::CheckMadeFor(checkpoint_, "checkpoint", file);
  if (status.ok()) status = RowDelta::Read(file, &delta);
  if (status.ok()) status = Find(delta, &table);
  if (status.ok()) Publish(delta, *table);
  return status;
}

// Sets `*table` to the delta's table.
Status TableDeltas::Find(const RowDelta& delta, const MappedTable** table) const {
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [&](const auto& one) { return one.name == delta.table; });
  const std::string name = "table \"" + Readable(delta.table) + "\"";
  if (found == tables_.end()) return FailedPrecondition("the model has no ", name);
  if (found->mapped == nullptr) return FailedPrecondition(name, " is not mapped: ", found->why);
  const auto dims = found->mapped->shape.dim_sizes();
  std::vector<int64_t> expected(dims.begin(), dims.end());
  const int64_t rows = std::exchange(expected[0], static_cast<int64_t>(delta.ids.size()));
  const std::string_view dtype =
      tables::StoredDtypeOf(static_cast<colcast::DataType>(found->mapped->dtype));
  if (delta.dtype != dtype || delta.shape != expected) {
    return FailedPrecondition(name, ": its rows are ", delta.dtype, ShapeName(delta.shape),
                              ", expected ", dtype, ShapeName(expected));
  }
  const int64_t last = delta.ids[delta.ids.size() - 1];
  if (last >= rows) return FailedPrecondition(name, " has ", rows, " rows, no row ", last);
  *table = found->mapped.get();
  return OkStatus();
}

void TableDeltas::Publish(const RowDelta& delta, const MappedTable& table) {
  auto made = std::make_shared<Generation>(*now());
  ++made->deltas;
  auto of = std::find_if(made->overlays.begin(), made->overlays.end(),
                         [&](const auto& one) { return one->table() == table.data(); });
  if (of == made->overlays.end()) {
    made->overlays.push_back(
        std::make_shared<Overlay>(table.data(), delta.row_bytes, table.shape.dim_size(0)));
    of = made->overlays.end() - 1;
  }
  *of = (*of)->With(delta.ids, delta.rows, made->deltas);
  const std::lock_guard<std::mutex> lock(mutex_);
  before_.push_back(now_);
  now_ = std::move(made);
  has_changed_.store(true, std::memory_order_release);
}

void TableDeltas::AddTo(TableMemory* memory) const {
  const tables::GenerationPtr now = this->now();
  memory->deltas = now->deltas;
  for (const ServedTable& table : tables_) {
    if (table.mapped == nullptr && !table.is_large) continue;
    TableMemory::Table& one = memory->tables.emplace_back();
    one.name = table.name;
    one.why_in_memory = table.why;
    for (const auto& overlay : now->overlays) {
      if (table.mapped == nullptr || overlay->table() != table.mapped->data()) continue;
      one.last_delta = overlay->sequence();
      memory->changed += overlay->bytes();
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  memory->delta_error = error_;
}

std::string UnusedDeltas(const std::string& directory) {
  const int64_t count = tables::DeltasIn(FolderOf(directory));
  if (count == 0) return "";
  return "with --map_tables=off, tables take no deltas: " + FolderOf(directory) + "/" +
         tables::DeltaName(1) + (count > 1 ? " to " + tables::DeltaName(count) : "") + " " +
         (count > 1 ? "are" : "is") + " not applied";
}

}  // namespace colcast::engine
