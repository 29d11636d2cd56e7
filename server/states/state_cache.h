// The memory for all cached states of one kind, shared by all models and versions: with one bound
// per version, loading a new version beside the old one would double the memory.
#ifndef COLCAST_SERVER_STATES_STATE_CACHE_H_
#define COLCAST_SERVER_STATES_STATE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/states/counters.h"
#include "server/states/key.h"
#include "server/states/shard.h"
#include "server/states/state.h"

namespace colcast::states {

// All methods may be called from any thread.
class StateCache {
 public:
  // `capacity_bytes` bounds bytes(): the blocks as the allocator rounds them, and the lookup
  // tables. States that a request still reads after their eviction come on top.
  explicit StateCache(size_t capacity_bytes);

  StateRef Find(const Key& key) { return shards_[ShardOf(key)].Find(key); }

  // Sets `found[i]` to the state of keys[i], and leaves it as it was on a miss. Returns the number
  // of hits.
  size_t FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found);

  // Caches a state and counts it for `owner`, which must call Drop() before it is destroyed. Of two
  // states with one key the first stays. A state that exceeds the capacity is not cached.
  void Insert(const Key& key, StateRef state, Counters* owner) {
    shards_[ShardOf(key)].Insert(key, std::move(state), owner);
  }

  void Drop(const Counters* owner);

  size_t bytes() const;

  // Whether at least a tenth of the capacity is free.
  bool has_room() const { return bytes() < capacity_bytes_ - capacity_bytes_ / 10; }

 private:
  size_t ShardOf(const Key& key) const { return key.high >> 32 & (shards_.size() - 1); }

  const size_t capacity_bytes_;
  std::vector<Shard> shards_;  // the size is a power of two
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STATE_CACHE_H_
