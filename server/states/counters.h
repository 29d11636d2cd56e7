// What is counted of one store of one version.
#ifndef COLCAST_SERVER_STATES_COUNTERS_H_
#define COLCAST_SERVER_STATES_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace colcast::states {

struct Counters {
  std::atomic<int64_t> found{0};       // states that were there, or were waited for
  std::atomic<int64_t> computed{0};    // states that the model had to make
  std::atomic<int64_t> not_looked{0};  // rows nobody looked for, since hardly any was ever found
  std::atomic<int64_t> evicted{0};     // states that made room for others
  std::atomic<int64_t> states{0};      // kept now
  std::atomic<int64_t> bytes{0};       // that they take now

  void Add(std::atomic<int64_t> Counters::*counter, int64_t count) {
    (this->*counter).fetch_add(count, std::memory_order_relaxed);
  }
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_COUNTERS_H_
