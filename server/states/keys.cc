#include "server/states/keys.h"

#include <highwayhash/highwayhash_target.h>
#include <highwayhash/instruction_sets.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <unordered_map>

#include "server/base/scratch.h"

namespace colcast::states {

KeyHash::KeyHash() {
  std::random_device random;  // reads getrandom(2) or the processor's generator
  for (uint64_t& word : secret_) word = uint64_t{random()} << 32 | random();
}

Key KeyHash::operator()(const void* data, size_t size) const {
  const highwayhash::HHKey key = {secret_[0], secret_[1], secret_[2], secret_[3]};
  highwayhash::HHResult128 hash;
  highwayhash::InstructionSets::Run<highwayhash::HighwayHash>(key, static_cast<const char*>(data),
                                                              size, &hash);
  return {hash[1], hash[0]};
}

bool FindDistinctRows(const std::vector<Key>& keys, int64_t most, std::vector<int64_t>* first,
                      std::vector<int64_t>* index) {
  std::unordered_map<Key, int64_t, LowWord> places;
  first->clear();
  index->resize(keys.size());
  for (size_t row = 0; row < keys.size(); ++row) {
    const auto [place, is_new] = places.try_emplace(keys[row], first->size());
    if (is_new) first->push_back(static_cast<int64_t>(row));
    if (static_cast<int64_t>(first->size()) > most) return false;
    (*index)[row] = place->second;
  }
  return true;
}

StoredKeys::Table::~Table() {
  for (std::atomic<Block*>& block : blocks) delete block.load(std::memory_order_relaxed);
}

std::shared_ptr<StoredKeys::Table> StoredKeys::Of(uint64_t number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return table_ != nullptr && table_->number == number ? table_ : nullptr;
}

// Keys of table `number`, created if the table is new; null if a newer one has replaced it.
std::shared_ptr<StoredKeys::Table> StoredKeys::OfOrNew(uint64_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (table_ == nullptr || table_->number < number) table_ = std::make_shared<Table>(number);
  return table_->number == number ? table_ : nullptr;
}

bool StoredKeys::Find(const StoredRows& rows, std::vector<Key>* keys) const {
  const std::shared_ptr<Table> table = Of(rows.table);
  if (table == nullptr) return false;
  const Span<uint32_t> numbers = rows.numbers;
  // Prefetches every slot before reading any, so that the cache misses overlap.
  thread_local std::vector<const Slot*> slots;
  const FreeIfLarge free_slots(&slots);
  slots.clear();
  for (const uint32_t number : numbers) {
    const size_t block = number / kBlockRows;
    const Block* const of =
        block < kMaxBlocks ? table->blocks[block].load(std::memory_order_acquire) : nullptr;
    if (of == nullptr) return false;
    slots.push_back(&(*of)[number % kBlockRows]);
    __builtin_prefetch(slots.back());
  }
  keys->resize(numbers.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    Key& key = (*keys)[i];
    key.high = slots[i]->high.load(std::memory_order_acquire);
    key.low = slots[i]->low.load(std::memory_order_relaxed);
    if (key.high == 0) return false;
  }
  return true;
}

void StoredKeys::Insert(const StoredRows& rows, const std::vector<Key>& keys) {
  const std::shared_ptr<Table> table = OfOrNew(rows.table);
  if (table == nullptr) return;
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t block = rows.numbers[i] / kBlockRows;
    if (block >= kMaxBlocks) continue;
    std::atomic<Block*>& place = table->blocks[block];
    Block* of = place.load(std::memory_order_acquire);
    if (of == nullptr) {
      auto made = std::make_unique<Block>();
      if (place.compare_exchange_strong(of, made.get(), std::memory_order_acq_rel)) {
        of = made.release();
      }
    }
    // The low word is stored first: a reader that sees the high word also sees the low one.
    Slot& slot = (*of)[rows.numbers[i] % kBlockRows];
    slot.low.store(keys[i].low, std::memory_order_relaxed);
    slot.high.store(keys[i].high, std::memory_order_release);
  }
}

}  // namespace colcast::states
