// A state is what a stage computed for one row. One cache holds the states of all models and
// versions: with a limit per version instead, loading a new version alongside the old one would
// double the memory. A store gives access to the states of one domain in one loaded version.
#ifndef COLCAST_SERVER_STATES_STATE_CACHE_H_
#define COLCAST_SERVER_STATES_STATE_CACHE_H_

#include <absl/base/thread_annotations.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/states/keys.h"

namespace colcast::states {

// The counters of one state store.
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

class StateRef;

// What a stage computed for one row, as bytes. Reference-counted. The header and the bytes are
// separate blocks: tensor rows are often a power of two in size, and in one block the header would
// push them into the allocator's next size class. The creator writes the bytes before it shares the
// state.
class State {
 public:
  // `layout` describes the bytes; only the creator interprets it.
  static StateRef Make(size_t size, uint32_t layout);

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  uint32_t layout() const { return layout_; }

  // Memory that the header and the bytes occupy.
  size_t memory_bytes() const;

 private:
  friend class StateRef;
  friend class Shard;
  friend class StateQueue;

  State(uint8_t* data, size_t size, uint32_t layout) : layout_(layout), size_(size), data_(data) {}
  void Release();

  std::atomic<uint32_t> references_{1};
  const uint32_t layout_;
  const size_t size_;
  uint8_t* const data_;

  // Used by the shard, under its lock, once the state is cached.
  Key key_;
  Counters* owner_ = nullptr;
  State* next_ = nullptr;
  uint8_t times_found_ = 0;
};

// A counted reference to a state, or null.
class StateRef {
 public:
  StateRef() = default;
  StateRef(const StateRef& other) : state_(other.state_) {
    if (state_ != nullptr) state_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  StateRef(StateRef&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  StateRef& operator=(StateRef other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~StateRef() {
    if (state_ != nullptr) state_->Release();
  }

  // Takes over a reference that has already been counted.
  static StateRef Adopt(State* state) {
    StateRef reference;
    reference.state_ = state;
    return reference;
  }
  State* Leak() { return std::exchange(state_, nullptr); }

  State* get() const { return state_; }
  State* operator->() const { return state_; }
  State& operator*() const { return *state_; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  State* state_ = nullptr;
};

class Shard;

// All methods may be called from any thread.
class StateCache {
 public:
  // `capacity_bytes` limits bytes(), which counts the blocks, as the allocator rounds them up, and
  // the lookup tables, but not evicted states that a request still reads.
  explicit StateCache(size_t capacity_bytes);

  ~StateCache();

  StateRef Find(const Key& key);

  // Sets `found[i]` to the state of keys[i], or leaves it unchanged on a miss. Returns the number
  // of hits.
  size_t FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found);

  // Caches a state and counts it for `owner`, which must call Drop() before it is destroyed. Does
  // nothing if the key is already cached or the state exceeds the capacity.
  void Insert(const Key& key, StateRef state, Counters* owner);

  void Drop(const Counters* owner);

  size_t bytes() const;

 private:
  size_t ShardOf(const Key& key) const;

  std::vector<Shard> shards_;  // the size is a power of two
};

// Estimates whether it pays to look up and cache states.
//
// Where rows rarely repeat, cached states are never used. The estimator remembers the keys of
// recent rows and checks, after every window of `window_rows`, how many of its rows had been seen
// before. While almost no rows had been seen, no new states are cached, but keys are still computed
// and recorded: that is cheap, and detects immediately when rows begin to repeat. After many such
// windows, only one request in sixteen is sampled.
//
// All methods may be called from any thread.
class ReuseEstimator {
 public:
  explicit ReuseEstimator(int64_t window_rows)
      : window_rows_(window_rows), seen_(std::make_unique<Seen>()) {}

  // Whether states are worth keeping.
  bool good() const { return bad_windows_.load(std::memory_order_relaxed) == 0; }

  // Whether to compute the keys of this request's rows. Call once per request.
  bool Look() {
    return bad_windows_.load(std::memory_order_relaxed) < kWindowsToWatch ||
           requests_.fetch_add(1, std::memory_order_relaxed) % kLookedAtOf == 0;
  }

  // Records the keys of rows and, at the end of a window, updates good().
  void Note(const Key* keys, size_t count);

  static constexpr int64_t kWindowsToWatch = 32;
  static constexpr int64_t kLookedAtOf = 16;
  static constexpr int64_t kLeastSeenOf = 32;  // reuse pays if one row in 32 was seen before

 private:
  // 32 bits of each key's high word, indexed by its low word. Newer keys overwrite older ones.
  using Seen = std::array<std::atomic<uint32_t>, size_t{1} << 16>;

  const int64_t window_rows_;
  const std::unique_ptr<Seen> seen_;
  std::atomic<int64_t> bad_windows_{0};  // latest consecutive windows with too little reuse
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> rows_seen_{0};
};

// All methods may be called from any thread. The destructor removes the store's states from the
// cache.
class StateStore {
 public:
  // `memory` must outlive the store; null turns caching off. `name` is a string literal.
  // `window_rows`: see ReuseEstimator.
  StateStore(std::string_view name, StateCache* memory, int64_t window_rows);
  StateStore(const StateStore&) = delete;
  ~StateStore();

  // Whether caching is on.
  bool on() const { return memory_ != nullptr; }
  const KeyHash& hash() const { return hash_; }
  ReuseEstimator& reuse() { return reuse_; }
  Counters& counters() { return counters_; }
  StoreStats stats() const;

  // All methods below REQUIRE on().

  // Sets `found[i]` to the state of keys[i], or null. Counts the hits, and records the rows in
  // reuse().
  size_t FindAll(const std::vector<Key>& keys, std::vector<StateRef>* found);

  // Caches a computed state and counts it.
  void Insert(const Key& key, StateRef state);

  // The rows that one request computes and that other requests may wait for.
  class Work {
   public:
    Work() = default;
    Work(const Work&) = delete;
    ~Work() { End(); }
    // Wakes the waiting requests. They look up the states and compute any that are still missing
    // because this request failed.
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

  // A request never waits for another that computes more than kMostTimesOwn times as many rows.
  static constexpr size_t kMostTimesOwn = 4;

  // The number of Work objects that have ended. Read it before FindAll(), then pass it to Begin().
  int64_t num_ended() const { return num_ended_.load(std::memory_order_acquire); }

  // Decides who computes `*rows`, the indices in `keys` that FindAll() missed. The caller must
  // compute the rows that remain in `*rows`, and insert their states before work->End(). Moves rows
  // to `*awaited` if they are being computed already: by another request, or by the caller under an
  // equal key. Rows that a much larger request computes (kMostTimesOwn) remain with the caller,
  // because waiting would take longer. States cached since `num_ended` was read move from `*rows`
  // to `*found`. `*work` must be new.
  void Begin(const std::vector<Key>& keys, int64_t num_ended, std::vector<int64_t>* rows,
             std::vector<int64_t>* awaited, std::vector<StateRef>* found, Work* work);

  // Waits until the requests that compute the `awaited` rows have finished, and looks up their
  // states. REQUIRES that the caller's own work has ended, so that two requests never wait for each
  // other.
  void Await(const std::vector<Key>& keys, const std::vector<int64_t>& awaited,
             std::vector<StateRef>* found, const Work& work);

  // The number of threads that are waiting for states.
  int64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  const std::string_view name_;
  StateCache* const memory_;
  const KeyHash hash_;
  ReuseEstimator reuse_;
  Counters counters_;
  std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<Work::Progress>, LowWord> work_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> num_ended_{0};
  std::atomic<int64_t> waiting_{0};
};

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STATE_CACHE_H_
