// Reads mapped tables in the background, which brings them into the page cache and detects bytes
// that differ from the saved ones.
#ifndef COLCAST_SERVER_ENGINE_MAPPING_TABLE_READER_THREAD_H_
#define COLCAST_SERVER_ENGINE_MAPPING_TABLE_READER_THREAD_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "server/base/machine.h"
#include "server/base/thread.h"
#include "server/engine/engine.h"
#include "server/engine/mapping/mapped_tables.h"

namespace colcast::engine {

class TableReaderThread {
 public:
  // Checks each table once, and again after its file was touched. A model whose file has a new
  // modification time answers DATA_LOSS until that check. If the tables exceed `available` bytes, a
  // check evicts the pages it has read, so that pages that requests need stay in memory.
  explicit TableReaderThread(tensorflow::core::RefCountPtr<MappedTables> tables,
                             int64_t available = AvailableMemory());
  // Stops without finishing the current table.
  ~TableReaderThread();

  TableMemory memory() const;
  // Why the tables cannot be used; empty if they can.
  std::string damage() const;

 private:
  using Changes = std::map<const tables::MappedFile*, int64_t>;  // MappedFile::changed()

  void Run();
  bool SeeChanges(Changes* seen);
  void CheckAll(const Changes& seen);
  void SetDamage(std::string damage);

  const tensorflow::core::RefCountPtr<MappedTables> tables_;
  StopFlag stop_;
  mutable std::mutex mutex_;
  std::string damage_;
  Thread thread_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_MAPPING_TABLE_READER_THREAD_H_
