// Keys of states: keyed 128-bit hashes of the features from which the states were computed.
//
// Two different inputs with the same key would yield a wrong score. The hash secret is drawn when a
// version is loaded, so no one can construct such a pair, and a chance collision is negligible:
// with 2^32 states, its probability is 2^-65.
#ifndef COLCAST_SERVER_STATES_KEYS_H_
#define COLCAST_SERVER_STATES_KEYS_H_

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

// Computes the keys of a request's rows in one domain, from all columns of that domain.
//
// A key covers each column's dtype, inner dimensions and presence, and the row's elements, so two
// different rows never hash the same bytes. It does not depend on the request's other rows, on how
// numbers were encoded, or on padding if the lengths of rows are given.
//
// Reusable. Call Begin(), then one Add method for each column, always in the same order, then
// Finish(). The columns must outlive the last use of at().
class RowKeys {
 public:
  // `hash` belongs to the store in which the keys will be looked up; it must outlive Finish().
  void Begin(int64_t rows, const KeyHash& hash);

  // Adds a column that the request left out. Its default is not hashed, since it never changes.
  void AddAbsent();

  // Adds a column that all rows share, whatever its shape.
  void AddShared(const Column& column);

  // Adds a column whose first dimension counts the rows. Returns the errors of CopyValues() and
  // VisitStrings(). REQUIRES that CheckValues(column, elements) was OK.
  //
  // If not null, `lengths` gives each row's number of real entries in the second dimension; the
  // rest is padding, which does not affect the key. REQUIRES a second dimension, and lengths no
  // greater than its size.
  Status AddRows(const Column& column, int64_t elements, const int64_t* lengths = nullptr);

  // The keys, in the order of the rows.
  void Finish(std::vector<Key>* keys);

  // The memory kept for the next use, in bytes.
  size_t MemoryBytes() const { return header_.capacity() + arena_.capacity() + block_.capacity(); }

  // The elements of a row in the `index`th column passed to AddRows(). Strings are in the
  // fixed-size form that keys use.
  const uint8_t* at(size_t index, int64_t row) const {
    return sources_[index].data(arena_) + row * sources_[index].row_bytes;
  }

 private:
  // A column's contiguous elements: in the message if possible, else copied to `arena_`.
  struct Source {
    const uint8_t* message = nullptr;
    size_t offset = 0;  // position in `arena_`, if `message` is null
    size_t row_bytes = 0;

    const uint8_t* data(const std::vector<uint8_t>& arena) const {
      return message != nullptr ? message : arena.data() + offset;
    }
  };

  void AddHeader(uint8_t kind, const Column& column, size_t first_dim);
  void AddHeaderBytes(const Bytes& bytes);
  void AddStored(const Column& column);
  void AddHeaderList(const std::vector<Bytes>& list);
  uint8_t* Allocate(size_t bytes, Source* source);
  Status Read(const Column& column, int64_t elements, Source* source);
  Source WithoutPadding(const Source& source, int64_t entries, const int64_t* lengths);
  Status AddStrings(const Column& column, int64_t elements, Source* source);

  int64_t rows_ = 0;
  const KeyHash* hash_ = nullptr;
  std::vector<uint8_t> header_;
  std::vector<Source> sources_;  // the rows that at() returns
  // What Finish() hashes: `sources_`, with padded rows replaced by hashes of their real entries.
  std::vector<Source> hashed_;
  std::vector<uint8_t> arena_;  // the first `arena_used_` bytes are in use
  size_t arena_used_ = 0;
  std::vector<uint8_t> block_;  // rows assembled for hashing, as many as fit the L1 cache
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_KEYS_H_
