// A gRPC client of one server, for unary calls. It uses one connection, opened for the first call
// and reopened after it is lost.
#ifndef COLCAST_SERVER_HTTP2_CLIENT_H_
#define COLCAST_SERVER_HTTP2_CLIENT_H_

#include <absl/base/thread_annotations.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/base/thread.h"
#include "server/http2/client_call.h"
#include "server/http2/client_connection.h"
#include "server/http2/target.h"
#include "server/net/poller.h"

namespace colcast::http2 {

class Client {
 public:
  explicit Client(Target target);
  // Ends unfinished calls with CANCELLED.
  ~Client();

  // Starts a call and returns its number. `answered` is called once, on the client's own thread,
  // and must return soon. The status is DEADLINE_EXCEEDED at the deadline, UNAVAILABLE if no server
  // is reachable, otherwise the server's.
  uint64_t Start(ClientRequest request, ClientAnswered answered);
  // Ends an unfinished call with CANCELLED.
  void Cancel(uint64_t number);
  // Ends all calls soon with CANCELLED. Calls started later end immediately, on the thread that
  // starts them.
  void Stop();

 private:
  using Clock = scheduling::Clock;
  using CallPointer = ClientConnection::CallPointer;
  class Lookup;

  ClientConnection::Events ConnectionEvents();
  void Run();
  void Collect();
  void EndLate();
  void EndAll();
  void End(uint64_t number, const Status& status);
  void Fail(CallPointer call, Status status);
  void Refused(CallPointer call);
  void FailWaiting(const Status& status);
  void Forget(const ClientCall& call) { deadlines_.erase({call.request.deadline, call.number}); }

  void Dispatch();
  bool Connect();
  void Leave();
  bool LookUp();
  void ConnectToNext();

  const Target target_;
  const std::shared_ptr<net::Poller> poller_ = std::make_shared<net::Poller>();
  std::mutex mutex_;  // guards the members below
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<CallPointer> started_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> cancelled_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

  // Used only by the client's thread.
  std::vector<CallPointer> waiting_;  // calls that wait for a connection
  std::set<std::pair<Clock::time_point, uint64_t>> deadlines_;
  std::shared_ptr<Lookup> lookup_;  // a lookup of the target's name in progress, or null
  std::vector<Address> addresses_;  // addresses not tried yet
  Status connect_error_;
  std::shared_ptr<ClientConnection> connection_;
  std::vector<std::weak_ptr<ClientConnection>> leaving_;  // connections that take no more calls

  Thread thread_;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_CLIENT_H_
