// One lock's share of the memory for states: found by key, bounded in bytes.
//
// Who goes first is decided by S3-FIFO (Yang et al., "FIFO queues are all you need for cache
// eviction", SOSP 2023). New states wait in a small queue with a tenth of the memory; those found
// while they waited move on to the main queue, the others leave, and only their fingerprints are
// remembered for a while: who comes back goes to the main queue at once. Compared with least
// recently used, a catalogue scanned once does not push the popular items out, and finding a state
// writes one byte in place of relinking a list.
#ifndef COLCAST_SERVER_STATES_SHARD_H_
#define COLCAST_SERVER_STATES_SHARD_H_

#include <absl/base/thread_annotations.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "server/states/counters.h"
#include "server/states/key.h"
#include "server/states/state.h"

namespace colcast::states {

// First in, first out; linked through the states themselves.
class StateQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  size_t bytes() const { return bytes_; }
  size_t size() const { return size_; }
  void Push(State* state);
  State* Pop();  // requires !empty()

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

  // Finds `keys[i]` for each i of `indices`, which all belong here, into `found[i]`. Returns how
  // many there were. Faster than one by one: the memory's answers are waited for together.
  size_t FindAll(const Key* keys, const uint32_t* indices, size_t count, StateRef* found);

  // Keeps `state` for `owner`, unless there is one of that key or it is larger than everything.
  void Insert(const Key& key, StateRef state, Counters* owner);

  // Forgets what was kept for `owner`.
  void Drop(const Counters* owner);

  size_t bytes() const;

 private:
  // Open addressing with linear probing; the place of a key is its low word's lowest bits.
  struct Slot {
    uint64_t low = 0;
    State* state = nullptr;
  };
  // Of a state that left: part of its key, and when.
  struct Ghost {
    uint32_t fingerprint = 0;
    uint32_t time = 0;
  };

  size_t SlotOf(const Key& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(
      mutex_);  // where the key is, or the empty place where it belongs
  void Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remember(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsRemembered(const Key& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  State* EvictOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(State* state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t BytesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::mutex mutex_;
  size_t capacity_ = 0;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);    // a power of two of them
  std::vector<Ghost> ghosts_ ABSL_GUARDED_BY(mutex_);  // as many
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t evictions_ ABSL_GUARDED_BY(mutex_) = 0;
  StateQueue small_ ABSL_GUARDED_BY(mutex_);
  StateQueue main_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_SHARD_H_
