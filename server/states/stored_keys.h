// The keys of a table's rows, kept so that a row that is asked for again is not hashed again.
#ifndef COLCAST_SERVER_STATES_STORED_KEYS_H_
#define COLCAST_SERVER_STATES_STORED_KEYS_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "server/states/key.h"
#include "server/wire/stored_values.h"

namespace colcast::states {

// Of one stage. Remembers the keys of one table, the newest; 16 bytes for each of its rows, in
// blocks. All methods may be called from any thread.
class StoredKeys {
 public:
  // Sets `keys` to those of `rows`. False unless all are known; then `keys` holds anything.
  bool Find(const StoredRows& rows, std::vector<Key>* keys) const;

  // Remembers them. A greater table takes the place of the one before.
  void Insert(const StoredRows& rows, const std::vector<Key>& keys);

  // Implementation details follow.
 private:
  // A key of zeros is one that is not known. Its words are written at most once.
  struct Slot {
    std::atomic<uint64_t> high{0};
    std::atomic<uint64_t> low{0};
  };
  static constexpr size_t kBlockRows = 1 << 14;
  static constexpr size_t kMaxBlocks = 1 << 14;  // rows beyond are hashed each time
  using Block = std::array<Slot, kBlockRows>;

  struct Table {
    explicit Table(uint64_t number) : number(number) {}
    ~Table();
    const uint64_t number;
    std::array<std::atomic<Block*>, kMaxBlocks> blocks{};
  };

  std::shared_ptr<Table> Of(uint64_t number) const;
  std::shared_ptr<Table> OfOrNew(uint64_t number);

  mutable std::mutex mutex_;  // of the pointer
  std::shared_ptr<Table> table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STORED_KEYS_H_
