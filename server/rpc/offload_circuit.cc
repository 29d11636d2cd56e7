#include "server/rpc/offload_circuit.h"

#include <algorithm>

namespace colcast::rpc {

OffloadCircuit::State OffloadCircuit::At(Time now) const {
  const Clock::rep until = left_alone_until_.load(std::memory_order_relaxed);
  if (until == 0) return State::kAnswers;
  return now.time_since_epoch().count() < until ? State::kLeftAlone : State::kMayAnswer;
}

bool OffloadCircuit::Answered() {
  const std::lock_guard<std::mutex> lock(mutex_);
  waited_ = {};
  return left_alone_until_.exchange(0, std::memory_order_relaxed) != 0;
}

bool OffloadCircuit::Failed(Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return LeaveAlone(now);
}

bool OffloadCircuit::TimedOut(Time started, Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Concurrent calls count their common wait once.
  waited_ += now - std::max(started, last_timeout_);
  last_timeout_ = now;
  return waited_ >= patience_ && LeaveAlone(now);
}

bool OffloadCircuit::LeaveAlone(Time now) {
  const Clock::rep until = (now + pause_).time_since_epoch().count();
  return left_alone_until_.exchange(until, std::memory_order_relaxed) == 0;
}

}  // namespace colcast::rpc
