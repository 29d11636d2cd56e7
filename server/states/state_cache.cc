#include "server/states/state_cache.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <utility>

#include "server/base/scratch.h"

namespace colcast::states {

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

namespace {

constexpr size_t kFirstSlots = 64;
constexpr uint8_t kMostTimesFound = 3;
constexpr size_t kSmallQueuesShare = 10;  // the small queue has one tenth of the memory

uint32_t FingerprintOf(const Key& key) { return static_cast<uint32_t>(key.high) | 1; }

}  // namespace

void StateQueue::Push(State* state) {
  state->next_ = nullptr;
  (last_ == nullptr ? first_ : last_->next_) = state;
  last_ = state;
  bytes_ += state->memory_bytes();
  ++size_;
}

State* StateQueue::Pop() {
  State* const state = first_;
  first_ = state->next_;
  if (first_ == nullptr) last_ = nullptr;
  bytes_ -= state->memory_bytes();
  --size_;
  return state;
}

Shard::~Shard() {
  for (StateQueue* queue : {&small_, &main_}) {
    while (!queue->empty()) StateRef::Adopt(queue->Pop());
  }
}

size_t Shard::SlotOf(const Key& key) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = key.low & mask;
  while (slots_[slot].state != nullptr &&
         (slots_[slot].low != key.low || slots_[slot].state->key_ != key)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

StateRef Shard::Find(const Key& key) {
  StateRef found;
  const uint32_t index = 0;
  FindAll(&key, &index, 1, &found);
  return found;
}

size_t Shard::FindAll(const Key* keys, const uint32_t* indices, size_t count, StateRef* found) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (slots_.empty()) return 0;
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < count; ++i) {
    __builtin_prefetch(&slots_[keys[indices[i]].low & mask]);
  }
  for (size_t i = 0; i < count; ++i) {
    __builtin_prefetch(slots_[keys[indices[i]].low & mask].state, /*for writing*/ 1);
  }
  size_t num_found = 0;
  for (size_t i = 0; i < count; ++i) {
    State* const state = slots_[SlotOf(keys[indices[i]])].state;
    if (state == nullptr) continue;
    if (state->times_found_ < kMostTimesFound) ++state->times_found_;
    state->references_.fetch_add(1, std::memory_order_relaxed);
    found[indices[i]] = StateRef::Adopt(state);
    ++num_found;
  }
  return num_found;
}

void Shard::Insert(const Key& key, StateRef state, Counters* owner) {
  const size_t bytes = state->memory_bytes();
  if (bytes > capacity_) return;
  std::vector<StateRef> evicted;  // destroyed after the lock is released
  std::lock_guard<std::mutex> lock(mutex_);
  if ((count_ + 1) * 4 > slots_.size() * 3) Grow();
  Slot& slot = slots_[SlotOf(key)];
  if (slot.state != nullptr) return;
  State* const kept = state.Leak();
  kept->key_ = key;
  kept->owner_ = owner;
  kept->times_found_ = 0;
  slot = {key.low, kept};
  ++count_;
  owner->Add(&Counters::states, 1);
  owner->Add(&Counters::bytes, static_cast<int64_t>(bytes));
  (IsRemembered(key) ? main_ : small_).Push(kept);
  while (BytesLocked() > capacity_ && count_ > 0) evicted.push_back(StateRef::Adopt(EvictOne()));
}

State* Shard::EvictOne() {
  while (true) {
    if (!small_.empty() && (main_.empty() || small_.bytes() * kSmallQueuesShare >= capacity_)) {
      State* const state = small_.Pop();
      if (state->times_found_ > 0) {
        state->times_found_ = 0;
        main_.Push(state);
        continue;
      }
      Remember(state->key_);
      Forget(state);
      return state;
    }
    State* const state = main_.Pop();
    if (state->times_found_ > 0) {
      --state->times_found_;
      main_.Push(state);
      continue;
    }
    Forget(state);
    return state;
  }
}

void Shard::Forget(State* state) {
  Erase(state->key_);
  state->owner_->Add(&Counters::evicted, 1);
  state->owner_->Add(&Counters::states, -1);
  state->owner_->Add(&Counters::bytes, -static_cast<int64_t>(state->memory_bytes()));
}

void Shard::Erase(const Key& key) {
  const size_t mask = slots_.size() - 1;
  size_t hole = SlotOf(key);
  // Moves entries into the hole if a lookup would otherwise stop there before it reaches them.
  for (size_t next = (hole + 1) & mask; slots_[next].state != nullptr; next = (next + 1) & mask) {
    const size_t home = slots_[next].low & mask;
    if (((next - home) & mask) < ((next - hole) & mask)) continue;
    slots_[hole] = slots_[next];
    hole = next;
  }
  slots_[hole] = Slot();
  --count_;
}

void Shard::Grow() {
  std::vector<Slot> old(std::max(kFirstSlots, slots_.size() * 2));
  old.swap(slots_);
  std::vector<Ghost>(slots_.size()).swap(ghosts_);
  for (const Slot& slot : old) {
    if (slot.state != nullptr) slots_[SlotOf(slot.state->key_)] = slot;
  }
}

void Shard::Remember(const Key& key) {
  ghosts_[key.low & (ghosts_.size() - 1)] = {FingerprintOf(key), ++evictions_};
}

bool Shard::IsRemembered(const Key& key) const {
  const Ghost& ghost = ghosts_[key.low & (ghosts_.size() - 1)];
  // A key is remembered for as many evictions as the main queue has states.
  return ghost.fingerprint == FingerprintOf(key) && evictions_ - ghost.time <= main_.size();
}

void Shard::Drop(const Counters* owner) {
  std::vector<StateRef> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  for (StateQueue* queue : {&small_, &main_}) {
    for (size_t left = queue->size(); left > 0; --left) {
      State* const state = queue->Pop();
      if (state->owner_ != owner) {
        queue->Push(state);
        continue;
      }
      Erase(state->key_);
      dropped.push_back(StateRef::Adopt(state));
    }
  }
}

size_t Shard::BytesLocked() const {
  return small_.bytes() + main_.bytes() + slots_.size() * (sizeof(Slot) + sizeof(Ghost));
}

size_t Shard::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return BytesLocked();
}

namespace {

constexpr size_t kMostShards = 16;
// The eviction queues work only if a shard has room for many states.
constexpr size_t kLeastShardBytes = size_t{1} << 20;

size_t NumShards(size_t capacity_bytes) {
  size_t shards = 1;
  while (shards < kMostShards && capacity_bytes / (shards * 2) >= kLeastShardBytes) shards *= 2;
  return shards;
}

}  // namespace

StateCache::~StateCache() = default;

size_t StateCache::ShardOf(const Key& key) const { return key.high >> 32 & (shards_.size() - 1); }

StateRef StateCache::Find(const Key& key) { return shards_[ShardOf(key)].Find(key); }

void StateCache::Insert(const Key& key, StateRef state, Counters* owner) {
  shards_[ShardOf(key)].Insert(key, std::move(state), owner);
}

StateCache::StateCache(size_t capacity_bytes) : shards_(NumShards(capacity_bytes)) {
  for (Shard& shard : shards_) shard.set_capacity(capacity_bytes / shards_.size());
}

size_t StateCache::FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found) {
  found->resize(keys.size());
  // The row numbers sorted by shard, so that each shard's lock is taken once.
  thread_local std::vector<uint32_t> indices;
  const FreeIfLarge free_indices(&indices);
  std::array<size_t, kMostShards + 1> ends{};
  for (const Key& key : keys) ++ends[ShardOf(key) + 1];
  for (size_t shard = 1; shard < ends.size(); ++shard) ends[shard] += ends[shard - 1];
  indices.resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) indices[ends[ShardOf(keys[i])]++] = i;
  size_t num_found = 0;
  size_t begin = 0;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    const size_t end = ends[shard];
    if (end == begin) continue;
    num_found +=
        shards_[shard].FindAll(keys.data(), indices.data() + begin, end - begin, found->data());
    begin = end;
  }
  return num_found;
}

void StateCache::Drop(const Counters* owner) {
  for (Shard& shard : shards_) shard.Drop(owner);
}

size_t StateCache::bytes() const {
  size_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.bytes();
  return bytes;
}

}  // namespace colcast::states
