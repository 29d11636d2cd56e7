// Whether keeping states, and looking for them, is worth it.
//
// Where rows hardly ever come again, what is kept is kept for nothing. So the keys of the latest
// rows are remembered, and after every stretch of rows it is judged how many had been seen before.
// While next to none was, nothing new is kept, but keys are still made and watched: that is cheap,
// and says at once when rows begin to come again. Where that goes on for long, only one request in
// sixteen is watched.
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
  // Judges after every `stretch` rows.
  explicit ReuseEstimator(int64_t stretch) : stretch_(stretch), seen_(std::make_unique<Seen>()) {}

  // Whether states are worth keeping.
  bool good() const { return bad_stretches_.load(std::memory_order_relaxed) == 0; }

  // Whether to make the keys of this request's rows. Every call counts as a request.
  bool Look() {
    return bad_stretches_.load(std::memory_order_relaxed) < kStretchesToWatch ||
           requests_.fetch_add(1, std::memory_order_relaxed) % kLookedAtOf == 0;
  }

  // Rows whose keys were made.
  void Note(const Key* keys, size_t count);

  static constexpr int64_t kStretchesToWatch = 32;
  static constexpr int64_t kLookedAtOf = 16;
  static constexpr int64_t kLeastSeenOf = 32;  // one row of 32 seen before is worth the effort

 private:
  // Part of a key, where the key's other part says; the latest of a place counts.
  using Seen = std::array<std::atomic<uint32_t>, size_t{1} << 16>;

  const int64_t stretch_;
  const std::unique_ptr<Seen> seen_;
  std::atomic<int64_t> bad_stretches_{0};  // one after the other, until now
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> rows_seen_{0};
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_REUSE_ESTIMATOR_H_
