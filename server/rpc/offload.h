// Sends large Predict requests on to another server, which has an accelerator. Requests that it
// does not answer run here, as if they had never been sent on.
//
// Where to send a query by its size, and how the size is found: Gupta et al., "DeepRecSys: A System
// for Optimizing End-To-End At-Scale Neural Recommendation Inference", ISCA 2020.
#ifndef COLCAST_SERVER_RPC_OFFLOAD_H_
#define COLCAST_SERVER_RPC_OFFLOAD_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "server/backend.h"
#include "server/http2/call.h"
#include "server/http2/client.h"
#include "server/http2/target.h"
#include "server/rpc/offload_circuit.h"

namespace colcast::rpc {

using http2::Call;

class Offload {
 public:
  struct Options {
    http2::Target target;      // a server with the same models
    int64_t rows = 1;          // requests with at least as many rows are sent on
    int32_t timeout_ms = 500;  // at most, and at most half of the time that the client still waits
    int max_in_flight = 1000;  // most calls at the other server; one more runs here
  };

  // `backend` outlives every call.
  Offload(const Options& options, const Backend& backend);
  // As Stop().
  ~Offload();

  // Calls that the other server has, and those taken from now on, soon end as UNAVAILABLE.
  void Stop();

  // Takes a Predict call if it has the rows and names a model that is served here: the answer goes
  // to the client as it comes, and without one the call is run here. False: it was not taken. A
  // server that was found missing is left alone for a second, and then asked one call at a time
  // until it answers. A call that another server has sent on goes no further; one that comes from
  // this server itself ends the offload. Cheap enough for where calls are read: only names and
  // shapes are read.
  bool Take(Call* call);

 private:
  friend class OffloadedCall;
  using Clock = OffloadCircuit::Clock;

  bool MayTake() const;
  // Whether another server has sent the call on, or this one.
  bool WasSentOn(const Call& call);
  // Notes what the end of a call says about the other server.
  void Leave(const Status& status, Clock::time_point started);

  const Options options_;
  const Backend& backend_;
  const std::string id_;  // of this server, in what it sends on
  OffloadCircuit circuit_;
  std::atomic<int> in_flight_{0};
  std::atomic<bool> leads_here_{false};  // the target is this server
  std::atomic<bool> ending_{false};
  std::unique_ptr<http2::Client> client_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_OFFLOAD_H_
