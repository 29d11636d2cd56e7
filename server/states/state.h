// What a stage computed for one row, as bytes.
#ifndef COLCAST_SERVER_STATES_STATE_H_
#define COLCAST_SERVER_STATES_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "server/states/key.h"

namespace colcast::states {

struct Counters;
class StateRef;

// Reference-counted. The header and the bytes are separate blocks: tensor rows are often a power of
// two in size, and in one block the header would push them into the allocator's next size class.
// The creator writes the bytes before it shares the state.
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

}  // namespace colcast::states

#endif  // COLCAST_SERVER_STATES_STATE_H_
