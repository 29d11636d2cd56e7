// Applies the deltas in a version's folder `deltas` to the version's mapped tables while it
// serves.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_TABLE_DELTAS_H_
#define COLCAST_SERVER_ENGINE_MAPPING_TABLE_DELTAS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/engine/mapping/mapped_tables.h"
#include "server/tables/overlay.h"
#include "server/tables/polled_files.h"

namespace colcast::engine {

// A variable of a loaded model.
struct ServedTable {
  std::string name;
  std::string why;                            // why it is in memory
  std::shared_ptr<const MappedTable> mapped;  // null if it is in memory
  bool is_large = false;                      // large enough to be mapped
};

class TableDeltas {
 public:
  // Applies the deltas of the version in `directory`, then polls for new ones in a thread that all
  // models share.
  TableDeltas(const std::string& directory, std::vector<ServedTable> tables);

  // False until a delta has been applied; until then, runs need not call now().
  bool has_changed() const { return has_changed_.load(std::memory_order_acquire); }

  // The generation that new requests read.
  tables::GenerationPtr now() const;

  // Adds the tables and their deltas to `*memory`.
  void AddTo(TableMemory* memory) const;

 private:
  void Poll();
  Status Apply(tables::Safetensors* file);
  Status Find(const tables::RowDelta& delta, const MappedTable** table) const;
  void Publish(const tables::RowDelta& delta, const MappedTable& table);

  const std::string directory_;
  const std::vector<ServedTable> tables_;
  // Used only by the polling thread.
  tables::PolledFiles files_{tables::kRowsFormat};
  std::string checkpoint_;  // checksum of the version's index; empty until the first delta
  // Generations that runs may still read. The polling thread frees them, because that may take
  // long.
  std::vector<tables::GenerationPtr> before_;

  mutable std::mutex mutex_;  // guards the members below
  tables::GenerationPtr now_;
  std::string error_;

  std::atomic<bool> has_changed_{false};

  const std::shared_ptr<tables::PollThread> poller_ = tables::PollThread::Shared();
  tables::PollThread::Job job_;
};

// A note that a server that maps no tables does not apply the version's deltas; empty without any.
std::string UnusedDeltas(const std::string& directory);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_TABLE_DELTAS_H_
