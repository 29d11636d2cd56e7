// Forwards large Predict requests to another server, which has an accelerator. Requests that it
// does not answer run here, as if they had never been forwarded.
//
// The choice by query size, and how to tune the threshold: Gupta et al., "DeepRecSys: A System for
// Optimizing End-To-End At-Scale Neural Recommendation Inference", ISCA 2020.
#ifndef COLCAST_SERVER_RPC_OFFLOAD_H_
#define COLCAST_SERVER_RPC_OFFLOAD_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "server/backend.h"
#include "server/http2/call.h"
#include "server/http2/client.h"
#include "server/http2/target.h"

namespace colcast::rpc {

// Decides whether to forward requests to another server.
//
// All methods may be called from any thread.
class OffloadCircuit {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // If the server has not answered for `patience`, within one call or several in a row, it gets no
  // calls for `pause`.
  OffloadCircuit(Clock::duration patience, Clock::duration pause)
      : patience_(patience), pause_(pause) {}

  enum class State {
    kAnswers,
    kLeftAlone,
    kMayAnswer,  // the pause is over, so one call at a time tries it
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
  std::atomic<Clock::rep> left_alone_until_{0};  // 0 while it answers
  std::mutex mutex_;                             // guards the members below
  // time spent without success since the last answer
  Clock::duration waited_ ABSL_GUARDED_BY(mutex_){0};
  Time last_timeout_ ABSL_GUARDED_BY(mutex_){};
};

using http2::Call;

class Offload {
 public:
  struct Options {
    http2::Target target;      // a server with the same models
    int64_t rows = 1;          // requests with at least this many rows are forwarded
    int32_t timeout_ms = 500;  // also at most half of the client's remaining time
    int max_in_flight = 1000;  // limit of forwarded calls; further ones run here
  };

  // `backend` must outlive every call.
  Offload(const Options& options, const Backend& backend);
  // Calls Stop().
  ~Offload();

  // Ends forwarded calls soon, and calls forwarded later, with UNAVAILABLE.
  void Stop();

  // Takes a Predict call if it has enough rows and names a model that is served here; otherwise
  // returns false. The other server's answer goes to the client unchanged; without an answer the
  // call runs here. A server found unreachable is left alone for a second, then tried with one call
  // at a time until it answers. A call that another server forwarded is not forwarded again; one
  // that this server itself forwarded ends all forwarding. Cheap enough for the thread that reads
  // calls: only names and shapes are read.
  bool Take(Call* call);

 private:
  friend class OffloadedCall;
  using Clock = OffloadCircuit::Clock;

  bool MayTake() const;
  // Whether the call was forwarded by another server, or by this one.
  bool WasSentOn(const Call& call);
  // Updates the other server's state from the end of a call.
  void Leave(const Status& status, Clock::time_point started);

  const Options options_;
  const Backend& backend_;
  const std::string id_;  // this server's id, sent with forwarded calls
  OffloadCircuit circuit_;
  std::atomic<int> in_flight_{0};
  std::atomic<bool> leads_here_{false};  // the target turned out to be this server
  std::atomic<bool> ending_{false};
  std::unique_ptr<http2::Client> client_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_OFFLOAD_H_
