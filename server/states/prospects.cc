#include "server/states/prospects.h"

namespace colcast::states {

void Prospects::Tell(int64_t looked, int64_t found) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const int64_t all_found = found_.fetch_add(found, kRelaxed) + found;
  const int64_t all_looked = looked_.fetch_add(looked, kRelaxed) + looked;
  if (all_looked < stretch_) return;
  // Several threads may judge one stretch; they come to about the same.
  good_.store(all_found * kLeastFoundOf >= all_looked, kRelaxed);
  looked_.store(0, kRelaxed);
  found_.store(0, kRelaxed);
}

}  // namespace colcast::states
