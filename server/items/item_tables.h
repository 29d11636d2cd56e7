// The item tables that are configured: their versions and deltas are looked for on disk, and each
// new one takes the place of the one before when it is ready.
#ifndef COLCAST_SERVER_ITEMS_ITEM_TABLES_H_
#define COLCAST_SERVER_ITEMS_ITEM_TABLES_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/base/file.h"
#include "server/base/status.h"
#include "server/base/stop_flag.h"
#include "server/items/item_table.h"

namespace colcast::items {

struct ItemTableConfig {
  std::string model;
  std::string domain;     // empty: whatever the table says
  std::string key;        // the name of the key's column
  std::string base_path;  // holds a folder for each version
  std::chrono::milliseconds poll_wait{1000};
  bool defaults_for_unknown = false;  // otherwise a request with an unknown key is refused
};

// One of them.
class ItemTableSource {
 public:
  struct Stats {
    std::shared_ptr<const ItemTable> table;  // null: none has been loaded
    int64_t version = 0;                     // its folder's number
    Status status;                           // why what was found last is not served
    int64_t lookups = 0;                     // keys
    int64_t unknown_keys = 0;                // of them
  };

  explicit ItemTableSource(ItemTableConfig config) : config_(std::move(config)) {}

  const ItemTableConfig& config() const { return config_; }

  // What serves; null if there is none yet.
  std::shared_ptr<const ItemTable> table() const;

  Stats stats() const;

  // To be told of each request.
  void Count(int64_t keys, int64_t unknown) {
    lookups_.fetch_add(keys, std::memory_order_relaxed);
    unknown_keys_.fetch_add(unknown, std::memory_order_relaxed);
  }

  // Looks for a version and for deltas, and loads what is new. What cannot be loaded is logged
  // once, and read again when the file is another. Not from several threads at once.
  void Poll();

 private:
  Status PollVersions();
  Status PollTable(const std::string& folder, std::shared_ptr<const ItemTable>* table);
  Status PollDeltas(std::shared_ptr<const ItemTable>* table);
  Status CheckHeader(const TableHeader& header) const;
  Status Use(const std::string& path, const FileIdentity& id,
             const std::function<Status(std::shared_ptr<const TableFile>)>& use);
  void Publish(std::shared_ptr<const ItemTable> table, int64_t version);

  const ItemTableConfig config_;

  // Only Poll() touches these.
  std::string folder_;                                              // of the version that serves
  FileIdentity file_;                                               // its table
  std::map<std::string, std::pair<FileIdentity, Status>> refused_;  // by path

  mutable std::mutex mutex_;
  std::shared_ptr<const ItemTable> table_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  Status status_ ABSL_GUARDED_BY(mutex_);

  std::atomic<int64_t> lookups_{0};
  std::atomic<int64_t> unknown_keys_{0};
};

class ItemTables {
 public:
  // Looks for all tables once, and then from a thread of its own.
  explicit ItemTables(const std::vector<ItemTableConfig>& configs);
  ~ItemTables();

  const std::vector<std::unique_ptr<ItemTableSource>>& sources() const { return sources_; }

  // Those of a model.
  std::vector<ItemTableSource*> Of(std::string_view model) const;

 private:
  void Run();

  std::vector<std::unique_ptr<ItemTableSource>> sources_;
  StopFlag stop_;
  std::thread thread_;
};

}  // namespace colcast::items

#endif  // COLCAST_SERVER_ITEMS_ITEM_TABLES_H_
