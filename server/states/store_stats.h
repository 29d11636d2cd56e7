// The counters of one state store.
#ifndef COLCAST_SERVER_STATES_STORE_STATS_H_
#define COLCAST_SERVER_STATES_STORE_STATS_H_

#include <atomic>
#include <cstdint>
#include <string_view>

namespace colcast::states {

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

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STORE_STATS_H_
