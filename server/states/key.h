// The key of a state: a keyed 128-bit hash of the features from which the state was computed.
//
// Two different inputs with the same key would yield a wrong score. The hash secret is drawn when a
// version is loaded, so no one can construct such a pair, and a chance collision is negligible:
// with 2^32 states, its probability is 2^-65.
#ifndef COLCAST_SERVER_STATES_KEY_H_
#define COLCAST_SERVER_STATES_KEY_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "server/wire/column.h"

namespace colcast::states {

struct Key {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const Key& a, const Key& b) { return a.high == b.high && a.low == b.low; }
  friend bool operator!=(const Key& a, const Key& b) { return !(a == b); }
};

// For standard containers. Keys are already hashes, so the low word suffices.
struct LowWord {
  size_t operator()(const Key& key) const { return key.low; }
};

// HighwayHash with a random secret per instance. Immutable.
class KeyHash {
 public:
  // Draws the secret from the operating system.
  KeyHash();
  explicit KeyHash(const std::array<uint64_t, 4>& secret) : secret_(secret) {}

  Key operator()(const void* data, size_t size) const;

 private:
  alignas(32) std::array<uint64_t, 4> secret_;
};

// Sets `*first` to the first row of each distinct key, in ascending order, and `*index` to the
// position of each row's key in `*first`. Returns false, and leaves both outputs unspecified, if
// there are more than `most` distinct keys.
bool FindDistinctRows(const std::vector<Key>& keys, int64_t most, std::vector<int64_t>* first,
                      std::vector<int64_t>* index);

// Remembers the keys of an item table's rows, so that rows requested again are not hashed again.
//
// Holds the keys of one stage for the newest table: 16 bytes per row, in blocks. All methods may be
// called from any thread.
class StoredKeys {
 public:
  // Sets `keys` to the keys of `rows`. Returns false, and leaves `keys` unspecified, if any key is
  // not remembered.
  bool Find(const StoredRows& rows, std::vector<Key>* keys) const;

  // Remembers the keys of `rows`. A table with a greater number replaces the previous one.
  void Insert(const StoredRows& rows, const std::vector<Key>& keys);

 private:
  // A slot of zeros is empty. Each word is written at most once with a value other than 0.
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

  mutable std::mutex mutex_;  // guards only the pointer; slots are atomic
  std::shared_ptr<Table> table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_KEY_H_
