// Keys of an item table's rows, remembered so that a row requested again is not hashed again.
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
#include "server/wire/column_values.h"

namespace colcast::states {

// The keys of one stage for the newest table: 16 bytes for each of its rows, in blocks. All methods
// may be called from any thread.
class StoredKeys {
 public:
  // Sets `keys` to the keys of `rows`. Returns false, and leaves `keys` unspecified, unless all are
  // remembered.
  bool Find(const StoredRows& rows, std::vector<Key>* keys) const;

  // Remembers the keys of `rows`. A table with a greater number replaces the previous one.
  void Insert(const StoredRows& rows, const std::vector<Key>& keys);

 private:
  // All zeros: an empty slot. Each word is written at most once with a value other than 0.
  struct Slot {
    std::atomic<uint64_t> high{0};
    std::atomic<uint64_t> low{0};
  };
  static constexpr size_t kBlockRows = 1 << 14;
  static constexpr size_t kMaxBlocks = 1 << 14;  // rows beyond these blocks are hashed each time
  using Block = std::array<Slot, kBlockRows>;

  struct Table {
    explicit Table(uint64_t number) : number(number) {}
    ~Table();
    const uint64_t number;
    std::array<std::atomic<Block*>, kMaxBlocks> blocks{};
  };

  std::shared_ptr<Table> Of(uint64_t number) const;
  std::shared_ptr<Table> OfOrNew(uint64_t number);

  mutable std::mutex mutex_;  // guards the pointer alone; the table's slots are atomic
  std::shared_ptr<Table> table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STORED_KEYS_H_
