// States, what a stage computed for one row, and their cache, shared by all models and versions.
// With a limit per version instead, loading a new version beside the old one would double the
// memory.
#ifndef COLCAST_SERVER_STATES_STATE_CACHE_H_
#define COLCAST_SERVER_STATES_STATE_CACHE_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "server/states/key.h"

namespace colcast::states {

// The counters of one state store.
struct Counters {
  std::atomic<int64_t> found{0};     // states found in the cache, or awaited from another request
  std::atomic<int64_t> computed{0};  // states computed by the model
  // Rows that were not looked up, because reuse is rare (ReuseEstimator).
  std::atomic<int64_t> not_looked{0};
  std::atomic<int64_t> evicted{0};
  std::atomic<int64_t> states{0};  // cached now
  std::atomic<int64_t> bytes{0};   // memory of the cached states

  void Add(std::atomic<int64_t> Counters::*counter, int64_t count) {
    (this->*counter).fetch_add(count, std::memory_order_relaxed);
  }
};

// A snapshot of a store's counters.
struct StoreStats {
  std::string_view store;  // "user", "item", "shop"
  int64_t found = 0;
  int64_t computed = 0;
  int64_t not_looked = 0;
  int64_t evicted = 0;
  int64_t states = 0;
  int64_t bytes = 0;
};

class StateRef;

// What a stage computed for one row, as bytes. Reference-counted. The header and the bytes are
// separate blocks: tensor rows are often a power of two in size, and in one block the header would
// push them into the allocator's next size class. The creator writes the bytes before it shares the
// state.
class State {
 public:
  // `layout` describes the bytes; only the creator interprets it.
  static StateRef Make(size_t size, uint32_t layout);

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  uint32_t layout() const { return layout_; }

  // Memory that the header and the bytes occupy.
  size_t memory_bytes() const;

 private:
  friend class StateRef;
  friend class Shard;
  friend class StateQueue;

  State(uint8_t* data, size_t size, uint32_t layout) : layout_(layout), size_(size), data_(data) {}
  void Release();

  std::atomic<uint32_t> references_{1};
  const uint32_t layout_;
  const size_t size_;
  uint8_t* const data_;

  // Used by the shard, under its lock, once the state is cached.
  Key key_;
  Counters* owner_ = nullptr;
  State* next_ = nullptr;
  uint8_t times_found_ = 0;
};

// A counted reference to a state, or null.
class StateRef {
 public:
  StateRef() = default;
  StateRef(const StateRef& other) : state_(other.state_) {
    if (state_ != nullptr) state_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  StateRef(StateRef&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  StateRef& operator=(StateRef other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~StateRef() {
    if (state_ != nullptr) state_->Release();
  }

  // Takes over a reference that has already been counted.
  static StateRef Adopt(State* state) {
    StateRef reference;
    reference.state_ = state;
    return reference;
  }
  State* Leak() { return std::exchange(state_, nullptr); }

  State* get() const { return state_; }
  State* operator->() const { return state_; }
  State& operator*() const { return *state_; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  State* state_ = nullptr;
};

// Eviction follows S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP
// 2023). New states enter a small queue with a tenth of the memory. States that are looked up there
// move on to the main queue. The others are evicted, but their fingerprints are remembered for a
// while, so that a state that returns goes straight to the main queue. Unlike with LRU, a scan of
// the catalog does not evict popular items, and a hit writes one byte instead of relinking a list.

// A first-in, first-out queue, linked through the states themselves.
class StateQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  size_t bytes() const { return bytes_; }
  size_t size() const { return size_; }
  void Push(State* state);
  State* Pop();  // REQUIRES !empty()

 private:
  State* first_ = nullptr;
  State* last_ = nullptr;
  size_t bytes_ = 0;
  size_t size_ = 0;
};

class Shard {
 public:
  Shard() = default;
  Shard(const Shard&) = delete;
  ~Shard();

  void set_capacity(size_t bytes) { capacity_ = bytes; }

  StateRef Find(const Key& key);

  // Sets `found[i]` to the state of `keys[i]` for each i in `indices`; all these keys must belong
  // to this shard. Returns the number of hits. Faster than single lookups, because it prefetches
  // all slots before it reads them.
  size_t FindAll(const Key* keys, const uint32_t* indices, size_t count, StateRef* found);

  // Caches `state` for `owner`, unless its key is present or the state exceeds the whole capacity.
  void Insert(const Key& key, StateRef state, Counters* owner);

  // Removes all states of `owner`.
  void Drop(const Counters* owner);

  size_t bytes() const;

 private:
  // Open addressing with linear probing. The lowest bits of a key's low word select its home slot.
  struct Slot {
    uint64_t low = 0;
    State* state = nullptr;
  };
  // What remains of an evicted state: a fingerprint of its key, and when it was evicted.
  struct Ghost {
    uint32_t fingerprint = 0;
    uint32_t time = 0;
  };

  size_t SlotOf(const Key& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(
      mutex_);  // returns the slot of `key`, or the empty slot where it belongs
  void Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remember(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsRemembered(const Key& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  State* EvictOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(State* state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t BytesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::mutex mutex_;
  size_t capacity_ = 0;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);    // the size is a power of two
  std::vector<Ghost> ghosts_ ABSL_GUARDED_BY(mutex_);  // as many as slots_
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t evictions_ ABSL_GUARDED_BY(mutex_) = 0;
  StateQueue small_ ABSL_GUARDED_BY(mutex_);
  StateQueue main_ ABSL_GUARDED_BY(mutex_);
};

// All methods may be called from any thread.
class StateCache {
 public:
  // `capacity_bytes` limits bytes(): the blocks, as the allocator rounds them up, and the lookup
  // tables. Evicted states that a request still reads are not counted.
  explicit StateCache(size_t capacity_bytes);

  StateRef Find(const Key& key) { return shards_[ShardOf(key)].Find(key); }

  // Sets `found[i]` to the state of keys[i], or leaves it unchanged on a miss. Returns the number
  // of hits.
  size_t FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found);

  // Caches a state and counts it for `owner`, which must call Drop() before it is destroyed. Does
  // nothing if the key is already cached or the state exceeds the capacity.
  void Insert(const Key& key, StateRef state, Counters* owner) {
    shards_[ShardOf(key)].Insert(key, std::move(state), owner);
  }

  void Drop(const Counters* owner);

  size_t bytes() const;

 private:
  size_t ShardOf(const Key& key) const { return key.high >> 32 & (shards_.size() - 1); }

  std::vector<Shard> shards_;  // the size is a power of two
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STATE_CACHE_H_
