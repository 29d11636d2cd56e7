#include <malloc.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "server/states/state_cache.h"

namespace colcast::states {

StateRef State::Make(size_t size, uint32_t layout) {
  void* const header = std::malloc(sizeof(State));
  void* const data = std::malloc(size);
  if (header == nullptr || (data == nullptr && size > 0)) {
    std::free(header);
    std::free(data);
    throw std::bad_alloc();
  }
  return StateRef::Adopt(new (header) State(static_cast<uint8_t*>(data), size, layout));
}

size_t State::memory_bytes() const {
  return malloc_usable_size(const_cast<State*>(this)) + malloc_usable_size(data_);
}

void State::Release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::free(data_);
  this->~State();
  std::free(this);
}

void ReuseEstimator::Note(const Key* keys, size_t count) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  int64_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    std::atomic<uint32_t>& place = (*seen_)[keys[i].low % seen_->size()];
    const auto part = static_cast<uint32_t>(keys[i].high);
    if (place.load(kRelaxed) == part) {
      ++seen;
    } else {
      place.store(part, kRelaxed);
    }
  }
  const int64_t all_seen = rows_seen_.fetch_add(seen, kRelaxed) + seen;
  const auto rows = static_cast<int64_t>(count);
  const int64_t all_rows = rows_.fetch_add(rows, kRelaxed) + rows;
  if (all_rows < window_rows_) return;
  // Several threads may judge the same window; the race makes the counts only slightly inaccurate.
  if (all_seen * kLeastSeenOf >= all_rows) {
    bad_windows_.store(0, kRelaxed);
  } else {
    bad_windows_.fetch_add(1, kRelaxed);
  }
  rows_.store(0, kRelaxed);
  rows_seen_.store(0, kRelaxed);
}

StateStore::StateStore(std::string_view name, StateCache* memory, int64_t window_rows)
    : name_(name), memory_(memory), reuse_(window_rows) {}

StateStore::~StateStore() {
  if (memory_ != nullptr) memory_->Drop(&counters_);
}

StoreStats StateStore::stats() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  StoreStats stats;
  stats.store = name_;
  stats.found = counters_.found.load(kRelaxed);
  stats.computed = counters_.computed.load(kRelaxed);
  stats.not_looked = counters_.not_looked.load(kRelaxed);
  stats.evicted = counters_.evicted.load(kRelaxed);
  stats.states = counters_.states.load(kRelaxed);
  stats.bytes = counters_.bytes.load(kRelaxed);
  return stats;
}

size_t StateStore::FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found) {
  found->assign(keys.size(), StateRef());
  const size_t num_found = memory_->FindAll(keys, found);
  counters_.Add(&Counters::found, static_cast<int64_t>(num_found));
  reuse_.Note(keys.data(), keys.size());
  return num_found;
}

void StateStore::Insert(const Key& key, StateRef state) {
  counters_.Add(&Counters::computed, 1);
  memory_->Insert(key, std::move(state), &counters_);
}

void StateStore::Begin(const std::vector<Key>& keys, int64_t num_ended, std::vector<int64_t>* rows,
                       std::vector<int64_t>* awaited, std::vector<StateRef>* found, Work* work) {
  work->store_ = this;
  work->own_ = std::make_shared<Work::Progress>();
  awaited->clear();
  size_t left = 0;
  work->own_->rows = rows->size();
  std::lock_guard<std::mutex> lock(mutex_);
  const bool look_again = this->num_ended() != num_ended;
  for (const int64_t row : *rows) {
    const auto [at, is_new] = work_.try_emplace(keys[row], work->own_);
    const bool takes_long = at->second->rows > kMostTimesOwn * work->own_->rows;
    if (!is_new && !takes_long) {
      awaited->push_back(row);
      const bool known = !work->others_.empty() && work->others_.back() == at->second;
      if (at->second != work->own_ && !known) work->others_.push_back(at->second);
      continue;
    }
    if (is_new) work->keys_.push_back(keys[row]);
    if (look_again && ((*found)[row] = memory_->Find(keys[row]))) {
      counters_.Add(&Counters::found, 1);
    } else {
      (*rows)[left++] = row;
    }
  }
  rows->resize(left);
}

void StateStore::Work::End() {
  StateStore* const store = std::exchange(store_, nullptr);
  if (store == nullptr) return;
  std::lock_guard<std::mutex> lock(store->mutex_);
  for (const Key& key : keys_) store->work_.erase(key);
  store->num_ended_.fetch_add(1, std::memory_order_release);
  own_->is_over = true;
  own_->changed.notify_all();
}

void StateStore::Await(const std::vector<Key>& keys, const std::vector<int64_t>& awaited,
                       std::vector<StateRef>* found, const Work& work) {
  if (!work.others_.empty()) {
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.fetch_add(1, std::memory_order_relaxed);
    for (const std::shared_ptr<Work::Progress>& other : work.others_) {
      other->changed.wait(lock, [&] { return other->is_over; });
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  for (const int64_t row : awaited) {
    (*found)[row] = memory_->Find(keys[row]);
    counters_.Add(&Counters::found, (*found)[row] ? 1 : 0);
  }
}

}  // namespace colcast::states
