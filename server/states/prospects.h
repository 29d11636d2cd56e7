// Whether looking for states is worth it.
//
// Where rows are hardly ever found, hashing them and keeping what was computed costs for nothing.
// So after a stretch of which next to nothing was found, one request in sixteen is tried. Those are
// a sample of all: what is found in them is what would be found in all, once they have filled the
// store, and then every request is tried again.
#ifndef COLCAST_SERVER_STATES_PROSPECTS_H_
#define COLCAST_SERVER_STATES_PROSPECTS_H_

#include <atomic>
#include <cstdint>

namespace colcast::states {

// All methods may be called from any thread.
class Prospects {
 public:
  // Judged after every `stretch` rows.
  explicit Prospects(int64_t stretch) : stretch_(stretch) {}

  // Whether to try this request. Every call counts as one.
  bool Try() {
    return good_.load(std::memory_order_relaxed) ||
           requests_.fetch_add(1, std::memory_order_relaxed) % kTriedOf == 0;
  }
  // The same, without counting.
  bool good() const { return good_.load(std::memory_order_relaxed); }

  // What a request that was tried found.
  void Tell(int64_t looked, int64_t found);

  static constexpr int64_t kTriedOf = 16;
  static constexpr int64_t kLeastFoundOf = 32;  // one row of 32 found is worth the effort

 private:
  const int64_t stretch_;
  std::atomic<bool> good_{true};
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> looked_{0};
  std::atomic<int64_t> found_{0};
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_PROSPECTS_H_
