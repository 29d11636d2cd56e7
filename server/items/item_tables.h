// The configured item tables. Polls the disk for new versions and deltas, and replaces a table once
// a newer one is loaded.
#ifndef COLCAST_SERVER_ITEMS_ITEM_TABLES_H_
#define COLCAST_SERVER_ITEMS_ITEM_TABLES_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/file.h"
#include "server/base/status.h"
#include "server/items/item_table.h"
#include "server/tables/polled_files.h"

namespace colcast::items {

struct ItemTableConfig {
  std::string model;
  std::string domain;     // empty: any domain
  std::string key;        // the name of the key column
  std::string base_path;  // contains one folder per version
  std::chrono::milliseconds poll_wait{1000};
  bool defaults_for_unknown = false;  // if false, requests with unknown keys are refused
};

class ItemTableSource {
 public:
  struct Stats {
    std::shared_ptr<const ItemTable> table;  // null if none has been loaded
    int64_t version = 0;                     // the table's version
    Status status;                           // why the newest version is not being served
    int64_t lookups = 0;                     // number of keys looked up
    int64_t unknown_keys = 0;                // number of keys without a row
  };

  // Poll() ends early once `stop` returns true.
  explicit ItemTableSource(
      ItemTableConfig config, std::function<bool()> stop = [] { return false; })
      : config_(std::move(config)), files_(kItemsFormat, std::move(stop)) {}

  const ItemTableConfig& config() const { return config_; }

  // The table being served; null if none has been loaded.
  std::shared_ptr<const ItemTable> table() const;

  Stats stats() const;

  // Counts the keys of a request.
  void Count(int64_t keys, int64_t unknown) {
    lookups_.fetch_add(keys, std::memory_order_relaxed);
    unknown_keys_.fetch_add(unknown, std::memory_order_relaxed);
  }

  // Loads a new version and new deltas, if any. A file that cannot be loaded is logged once, and
  // read again only after it has changed, unless memory was short. Not thread-safe.
  void Poll();

 private:
  Status PollVersions();
  Status PollTable(const std::string& folder, std::shared_ptr<const ItemTable>* table);
  Status PollDeltas(std::shared_ptr<const ItemTable>* table);
  Status CheckHeader(tables::Safetensors* read) const;
  void Publish(std::shared_ptr<const ItemTable> table, int64_t version);

  const ItemTableConfig config_;

  // Used only by Poll().
  std::string folder_;  // folder of the version being served
  FileIdentity file_;   // the table file in `folder_`
  tables::PolledFiles files_;

  mutable std::mutex mutex_;
  std::shared_ptr<const ItemTable> table_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  Status status_ ABSL_GUARDED_BY(mutex_);

  std::atomic<int64_t> lookups_{0};
  std::atomic<int64_t> unknown_keys_{0};
};

class ItemTables {
 public:
  // Polls all tables once, then periodically on a separate thread. Stops reading files once `stop`
  // returns true.
  explicit ItemTables(
      const std::vector<ItemTableConfig>& configs,
      const std::function<bool()>& stop = [] { return false; });

  const std::vector<std::unique_ptr<ItemTableSource>>& sources() const { return sources_; }

  // Makes the polling thread check all tables for new files now.
  void PollNow() { poller_.PollNow(); }

  std::vector<ItemTableSource*> Of(std::string_view model) const;

 private:
  std::vector<std::unique_ptr<ItemTableSource>> sources_;
  tables::PollThread poller_;
  std::vector<tables::PollThread::Job> jobs_;
};

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_ITEM_TABLES_H_
