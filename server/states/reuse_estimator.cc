#include "server/states/reuse_estimator.h"

namespace colcast::states {

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
  // Several threads may judge the same window; the race only blurs the counts a little.
  if (all_seen * kLeastSeenOf >= all_rows) {
    bad_windows_.store(0, kRelaxed);
  } else {
    bad_windows_.fetch_add(1, kRelaxed);
  }
  rows_.store(0, kRelaxed);
  rows_seen_.store(0, kRelaxed);
}

}  // namespace colcast::states
