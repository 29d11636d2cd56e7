// A gRPC client of one server, for unary calls: one connection, made when the first call needs it
// and again once it has been lost.
#ifndef COLCAST_SERVER_HTTP2_CLIENT_H_
#define COLCAST_SERVER_HTTP2_CLIENT_H_

#include <absl/base/thread_annotations.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/http2/client_call.h"
#include "server/http2/client_connection.h"
#include "server/http2/target.h"
#include "server/net/poller.h"

namespace colcast::http2 {

class Client {
 public:
  explicit Client(Target target);
  // Calls that have not ended are CANCELLED.
  ~Client();

  // `answered` is called once, on the client's own thread, which it must not keep for long.
  // DEADLINE_EXCEEDED at the deadline, UNAVAILABLE where there is no server; what the server says
  // otherwise. Returns the call's number.
  uint64_t Start(ClientRequest request, ClientAnswered answered);
  // Ends a call that has not ended, which is answered CANCELLED.
  void Cancel(uint64_t number);
  // Ends all calls soon in the same way; calls started afterwards end immediately, on their own
  // threads.
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
  std::mutex mutex_;  // of what follows
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<CallPointer> started_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> cancelled_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

  // Of the client's thread.
  std::vector<CallPointer> waiting_;  // for a connection
  std::set<std::pair<Clock::time_point, uint64_t>> deadlines_;
  std::shared_ptr<Lookup> lookup_;  // of the target's name
  std::vector<Address> addresses_;  // that have not been tried
  Status connect_error_;
  std::shared_ptr<ClientConnection> connection_;
  std::vector<std::weak_ptr<ClientConnection>> leaving_;  // that take no more calls

  std::thread thread_;
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_CLIENT_H_
