// The memory that the states of one kind may take, whatever model and version they belong to: with
// a bound for each version, loading a new one beside the old would double what is taken.
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
  // `capacity_bytes` bounds what bytes() says: blocks as the allocator rounds them, and the tables
  // to find them. States that a request still reads while they are evicted come on top.
  explicit StateCache(size_t capacity_bytes);

  StateRef Find(const Key& key) { return shards_[ShardOf(key)].Find(key); }

  // `found[i]` becomes the state of keys[i], or stays what it was. Returns how many there were.
  size_t FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found);

  // Keeps a state and counts it for `owner`, which must Drop() before it goes. The first of two
  // with one key stays. One that does not fit at all is not kept.
  void Insert(const Key& key, StateRef state, Counters* owner) {
    shards_[ShardOf(key)].Insert(key, std::move(state), owner);
  }

  void Drop(const Counters* owner);

  size_t bytes() const;

  // Whether a tenth of the capacity is left.
  bool has_room() const { return bytes() < capacity_bytes_ - capacity_bytes_ / 10; }

 private:
  size_t ShardOf(const Key& key) const { return key.high >> 32 & (shards_.size() - 1); }

  const size_t capacity_bytes_;
  std::vector<Shard> shards_;  // a power of two of them
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STATE_CACHE_H_
