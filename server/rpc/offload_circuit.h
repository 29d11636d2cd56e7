// Whether the server that requests are sent on to is worth asking.
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

  // A server that has kept its calls waiting for `patience`, in one call or in several on end, is
  // left alone for `pause`.
  OffloadCircuit(Clock::duration patience, Clock::duration pause)
      : patience_(patience), pause_(pause) {}

  enum class State {
    kAnswers,
    kLeftAlone,
    kMayAnswer,  // it was left alone; one call at a time is to find out
  };
  State At(Time now) const;

  // The end of a call. Each returns whether the server is taken for another than before: for one
  // that answers, or for one that does not.
  bool Answered();
  bool Failed(Time now);                  // nobody was there, or what came was no answer
  bool TimedOut(Time started, Time now);  // the call's time was over

 private:
  bool LeaveAlone(Time now);

  const Clock::duration patience_;
  const Clock::duration pause_;
  std::atomic<Clock::rep> left_alone_until_{0};        // 0: it answers
  std::mutex mutex_;                                   // of what follows
  Clock::duration waited_ ABSL_GUARDED_BY(mutex_){0};  // in vain, since the last answer
  Time last_timeout_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_OFFLOAD_CIRCUIT_H_
