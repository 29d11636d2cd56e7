// Statistics of a store, as plain numbers.
#ifndef COLCAST_SERVER_STATES_STORE_STATS_H_
#define COLCAST_SERVER_STATES_STORE_STATS_H_

#include <cstdint>
#include <string_view>

namespace colcast::states {

// A reading of a store's counters (counters.h says what each one counts).
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
