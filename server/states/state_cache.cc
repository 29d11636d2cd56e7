#include "server/states/state_cache.h"

#include <algorithm>

namespace colcast::states {
namespace {

constexpr size_t kMostShards = 16;
// The eviction queues work only if a shard holds many states, whatever their size.
constexpr size_t kLeastShardBytes = size_t{1} << 20;

size_t NumShards(size_t capacity_bytes) {
  size_t shards = 1;
  while (shards < kMostShards && capacity_bytes / (shards * 2) >= kLeastShardBytes) shards *= 2;
  return shards;
}

}  // namespace

StateCache::StateCache(size_t capacity_bytes)
    : capacity_bytes_(capacity_bytes), shards_(NumShards(capacity_bytes)) {
  for (Shard& shard : shards_) shard.set_capacity(capacity_bytes / shards_.size());
}

size_t StateCache::FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found) {
  found->resize(keys.size());
  // The row numbers sorted by shard, so that each shard's lock is taken once.
  thread_local std::vector<uint32_t> indices;
  std::vector<size_t> ends(shards_.size() + 1);
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
