// The states of one domain of one loaded version of a model.
#ifndef COLCAST_SERVER_STATES_STATE_STORE_H_
#define COLCAST_SERVER_STATES_STATE_STORE_H_

#include <absl/base/thread_annotations.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/states/counters.h"
#include "server/states/key.h"
#include "server/states/reuse_estimator.h"
#include "server/states/state.h"
#include "server/states/state_cache.h"
#include "server/states/store_stats.h"
#include "server/states/without_states.h"

namespace colcast::states {

// All methods may be called from any thread. Everything kept is forgotten with the store.
class StateStore {
 public:
  // `memory`, null where states are not to be kept, must outlive the store. `name` is a literal.
  // `stretch`: ReuseEstimator'.
  StateStore(std::string_view name, StateCache* memory, int64_t stretch);
  StateStore(const StateStore&) = delete;
  ~StateStore();

  // Whether states are kept, for the calling thread.
  bool on() const { return memory_ != nullptr && !WithoutStates::HoldsHere(); }
  const KeyHash& hash() const { return hash_; }
  ReuseEstimator& reuse() { return reuse_; }
  Counters& counters() { return counters_; }
  StoreStats stats() const;

  // The rest REQUIRES on().

  // Whether more can be kept before anything is evicted.
  bool has_room() const { return memory_->has_room(); }

  // `found[i]` becomes the state of keys[i], or null. Counts those found, and notes the rows.
  size_t FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found);

  // Keeps what was computed and counts it.
  void Insert(const Key& key, StateRef state);

  // Rows that one request computes while others wait for them.
  class Work {
   public:
    Work() = default;
    Work(const Work&) = delete;
    ~Work() { End(); }
    // Those who wait go on. What has been kept is there for them; the rest, after a failure, they
    // compute themselves.
    void End();

   private:
    friend class StateStore;
    struct Progress {
      size_t rows = 0;
      bool is_over = false;
      std::condition_variable changed;
    };
    StateStore* store_ = nullptr;
    std::vector<Key> keys_;
    std::shared_ptr<Progress> own_;
    std::vector<std::shared_ptr<Progress>> others_;
  };

  // A request waits for rows of a work that has so many times as many as its own.
  static constexpr size_t kMostTimesOwn = 4;

  // To be read before FindAll() by who calls Begin() afterwards.
  int64_t num_ended() const { return num_ended_.load(std::memory_order_acquire); }

  // Divides `*rows`, places in `keys` of what FindAll() did not find. Those left are the caller's
  // to compute and to insert before work->End(). Those moved to `*awaited` another request computes
  // now, or the caller itself at another place; not what is part of far more (kMostTimesOwn), for
  // that would take longer to wait for than to compute. What has been kept since `num_ended` was
  // read is found after all. `*work` is new.
  void Begin(const std::vector<Key>& keys, int64_t num_ended, std::vector<int64_t>* rows,
             std::vector<int64_t>* awaited, std::vector<StateRef>* found, Work* work);

  // Waits for those who compute `awaited`, and finds what they kept. REQUIRES that the caller's own
  // work has ended, so that no two wait for each other.
  void Await(const std::vector<Key>& keys, const std::vector<int64_t>& awaited,
             std::vector<StateRef>* found, const Work& work);

  // How many threads wait for states now.
  int64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  const std::string_view name_;
  StateCache* const memory_;
  const KeyHash hash_;
  ReuseEstimator reuse_;
  Counters counters_;
  std::mutex mutex_;  // of what follows
  std::unordered_map<Key, std::shared_ptr<Work::Progress>, LowWord> work_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> num_ended_{0};
  std::atomic<int64_t> waiting_{0};
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STATE_STORE_H_
