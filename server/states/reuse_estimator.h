// Estimates whether caching states, and looking them up, pays.
//
// Where rows rarely repeat, cached states are never used. The estimator remembers the keys of
// recent rows and checks, after every window of `window_rows`, how many of its rows it had seen
// before. While that is almost none, no new states are cached, but keys are still computed and
// watched: that is cheap, and shows at once when rows begin to repeat. After many such windows only
// one request in sixteen is watched.
#ifndef COLCAST_SERVER_STATES_REUSE_ESTIMATOR_H_
#define COLCAST_SERVER_STATES_REUSE_ESTIMATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/states/key.h"

namespace colcast::states {

// All methods may be called from any thread.
class ReuseEstimator {
 public:
  // Judges after every `window_rows` rows, the window's size.
  explicit ReuseEstimator(int64_t window_rows)
      : window_rows_(window_rows), seen_(std::make_unique<Seen>()) {}

  // Whether states are worth keeping.
  bool good() const { return bad_windows_.load(std::memory_order_relaxed) == 0; }

  // Whether to make the keys of this request's rows. Every call counts as a request.
  bool Look() {
    return bad_windows_.load(std::memory_order_relaxed) < kWindowsToWatch ||
           requests_.fetch_add(1, std::memory_order_relaxed) % kLookedAtOf == 0;
  }

  // Records the keys of rows and, at the end of a window, judges it.
  void Note(const Key* keys, size_t count);

  static constexpr int64_t kWindowsToWatch = 32;
  static constexpr int64_t kLookedAtOf = 16;
  static constexpr int64_t kLeastSeenOf = 32;  // reuse pays if one row in 32 was seen before

 private:
  // 32 bits of a key's high word, at an index from its low word. A newer key overwrites an older
  // one.
  using Seen = std::array<std::atomic<uint32_t>, size_t{1} << 16>;

  const int64_t window_rows_;
  const std::unique_ptr<Seen> seen_;
  std::atomic<int64_t> bad_windows_{0};  // consecutive windows without enough reuse, up to now
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> rows_seen_{0};
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_REUSE_ESTIMATOR_H_
