#include "server/items/item_tables.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "server/base/log.h"
#include "server/wire/data_type.h"

namespace colcast::items {
namespace {

namespace fs = std::filesystem;

constexpr char kTable[] = "table.safetensors";

// Returns -1 if the name is not a number.
int64_t VersionOf(const std::string& name) {
  int64_t version = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data(), end, version);
  return error == std::errc() && stopped == end && version >= 0 ? version : -1;
}

// The versions that contain a table, highest first.
std::vector<int64_t> VersionsIn(const std::string& base_path, Status* status) {
  std::vector<int64_t> versions;
  std::error_code error;
  fs::directory_iterator entry(base_path, error);
  while (!error && entry != fs::directory_iterator()) {
    const int64_t version = VersionOf(entry->path().filename().native());
    std::error_code gone;
    if (version >= 0 && fs::exists(entry->path() / kTable, gone)) versions.push_back(version);
    entry.increment(error);
  }
  if (error) *status = Error(StatusCode::kNotFound, base_path, ": ", error.message());
  std::sort(versions.rbegin(), versions.rend());
  return versions;
}

}  // namespace

std::shared_ptr<const ItemTable> ItemTableSource::table() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return table_;
}

ItemTableSource::Stats ItemTableSource::stats() const {
  Stats stats;
  stats.lookups = lookups_.load(std::memory_order_relaxed);
  stats.unknown_keys = unknown_keys_.load(std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(mutex_);
  stats.table = table_;
  stats.version = version_;
  stats.status = status_;
  return stats;
}

void ItemTableSource::Poll() {
  Status status = PollVersions();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!status.ok() && status.message != status_.message && status.code != StatusCode::kCancelled) {
    LogWarning("item table: " + status.message, {config_.model, std::nullopt});
  }
  status_ = std::move(status);
}

// Loads the highest loadable version, with all its deltas.
Status ItemTableSource::PollVersions() {
  Status status;
  const std::vector<int64_t> versions = VersionsIn(config_.base_path, &status);
  if (versions.empty() && status.ok()) {
    status = Error(StatusCode::kNotFound, config_.base_path, ": no version with a ", kTable);
  }
  for (const int64_t version : versions) {
    const std::string folder = config_.base_path + "/" + std::to_string(version);
    std::shared_ptr<const ItemTable> table = folder == folder_ ? this->table() : nullptr;
    Status found = PollTable(folder, &table);
    if (table != nullptr) {
      const Status with_deltas = PollDeltas(&table);
      if (found.ok()) found = with_deltas;
      if (table != this->table()) Publish(std::move(table), version);
    }
    if (status.ok()) status = std::move(found);  // keep the highest version's error
    if (folder == folder_) break;
  }
  return status;
}

// Sets `*table` to a new table if the file has changed.
Status ItemTableSource::PollTable(const std::string& folder,
                                  std::shared_ptr<const ItemTable>* table) {
  const std::string path = folder + "/" + kTable;
  const FileIdentity id = IdentityOf(path);
  if (id == FileIdentity{}) return Error(StatusCode::kNotFound, path, " is gone");
  if (folder == folder_ && id == file_) return OkStatus();
  Status status = files_.Use(path, id, [&](tables::Safetensors* read) {
    std::shared_ptr<const TableFile> file;
    Status found = CheckHeader(read);
    if (found.ok()) found = TableFile::Read(TableFile::Kind::kTable, read, &file);
    if (found.ok()) *table = ItemTable::Create(std::move(file));
    return found;
  });
  if (status.ok()) {
    folder_ = folder;
    file_ = id;
  }
  return status;
}

// Applies deltas to `*table`, stopping at the first that is missing or cannot be applied.
Status ItemTableSource::PollDeltas(std::shared_ptr<const ItemTable>* table) {
  return files_.UseDeltas(folder_, (*table)->deltas(), [table](tables::Safetensors* read) {
    const ItemTable& before = **table;
    std::shared_ptr<const TableFile> file;
    Status found = tables::CheckMadeFor(before.header().checksum, "table_checksum", read);
    if (found.ok()) found = TableFile::Read(TableFile::Kind::kDelta, read, &file);
    return found.ok() ? before.WithDelta(std::move(file), table) : found;
  });
}

Status ItemTableSource::CheckHeader(tables::Safetensors* read) const {
  const std::string key = read->Text("key"), domain = read->Text("model_domain");
  if (!read->ok()) return read->status();
  if (key != config_.key) {
    return FailedPrecondition("its key is \"", Readable(key), "\", expected \"", config_.key, "\"");
  }
  if (config_.domain.empty() || domain == config_.domain) return OkStatus();
  return FailedPrecondition("its domain is \"", Readable(domain), "\", expected \"", config_.domain,
                            "\"");
}

void ItemTableSource::Publish(std::shared_ptr<const ItemTable> table, int64_t version) {
  LogInfo("item table " + folder_ + " serves: " + std::to_string(table->rows()) + " rows, " +
              std::to_string(table->deltas()) + " deltas",
          {config_.model, std::nullopt});
  std::shared_ptr<const ItemTable> before;  // freed after unlocking, because that may take long
  const std::lock_guard<std::mutex> lock(mutex_);
  before = std::exchange(table_, std::move(table));
  version_ = version;
}

ItemTables::ItemTables(const std::vector<ItemTableConfig>& configs,
                       const std::function<bool()>& stop) {
  for (const ItemTableConfig& config : configs) {
    ItemTableSource* const source =
        sources_.emplace_back(std::make_unique<ItemTableSource>(config, stop)).get();
    source->Poll();
    const Status status = poller_.Add(
        config.poll_wait, [source] { source->Poll(); }, &jobs_.emplace_back());
    if (!status.ok()) LogError(status.message + "; " + config.base_path + " stays as it is");
  }
}

std::vector<ItemTableSource*> ItemTables::Of(std::string_view model) const {
  std::vector<ItemTableSource*> found;
  for (const auto& source : sources_) {
    if (source->config().model == model) found.push_back(source.get());
  }
  return found;
}

}  // namespace colcast::items
