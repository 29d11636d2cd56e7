// Decides whether to forward requests to another server.
#ifndef COLCAST_SERVER_RPC_OFFLOAD_CIRCUIT_H_
#define COLCAST_SERVER_RPC_OFFLOAD_CIRCUIT_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <mutex>

namespace colcast::rpc {

// All methods may be called from any thread.
class OffloadCircuit {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // A server that has not answered for `patience`, within one call or several in a row, is left
  // alone for `pause`.
  OffloadCircuit(Clock::duration patience, Clock::duration pause)
      : patience_(patience), pause_(pause) {}

  enum class State {
    kAnswers,
    kLeftAlone,
    kMayAnswer,  // after being left alone; one call at a time tries it
  };
  State At(Time now) const;

  // Report the end of a call. Each returns whether the server's state, answering or not, has
  // changed.
  bool Answered();
  bool Failed(Time now);                  // unreachable, or the answer was malformed
  bool TimedOut(Time started, Time now);  // the call's time ran out

 private:
  bool LeaveAlone(Time now);

  const Clock::duration patience_;
  const Clock::duration pause_;
  std::atomic<Clock::rep> left_alone_until_{0};        // 0 while it answers
  std::mutex mutex_;                                   // guards the members below
  Clock::duration waited_ ABSL_GUARDED_BY(mutex_){0};  // without success, since the last answer
  Time last_timeout_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_OFFLOAD_CIRCUIT_H_
