// Limits long runs that cannot be split: while short requests arrive, one worker stays free for
// them.
#ifndef COLCAST_SERVER_SCHEDULING_LONG_RUNS_H_
#define COLCAST_SERVER_SCHEDULING_LONG_RUNS_H_

#include <atomic>
#include <utility>

namespace colcast::scheduling {

// All methods may be called from any thread.
class LongRuns {
 public:
  // The place of a run, given back by the destructor.
  class Place {
   public:
    Place() = default;
    ~Place() {
      if (of_ != nullptr) of_->running_.fetch_sub(1, std::memory_order_relaxed);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class LongRuns;
    LongRuns* of_ = nullptr;
  };

  explicit LongRuns(int num_workers) : most_(num_workers - 1) {}

  bool HasPlace() const { return running_.load(std::memory_order_relaxed) < most_; }

  // Counts a run. Returns false, without effect, if the run would occupy the last worker and may
  // not.
  bool Begin(bool may_take_last, Place* place) {
    int running = running_.load(std::memory_order_relaxed);
    do {
      if (!may_take_last && running >= most_) return false;
    } while (!running_.compare_exchange_weak(running, running + 1, std::memory_order_relaxed));
    place->of_ = this;
    return true;
  }

 private:
  const int most_;
  std::atomic<int> running_{0};
};

}  // namespace colcast::scheduling

#endif  // COLCAST_SERVER_SCHEDULING_LONG_RUNS_H_
