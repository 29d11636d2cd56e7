// An open loop: sends each call when it is due, whatever has been answered by then.
#ifndef COLCAST_SERVER_SENDER_SENDER_H_
#define COLCAST_SERVER_SENDER_SENDER_H_

#include <openssl/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/http2/client_connection.h"
#include "server/http2/target.h"
#include "server/net/poller.h"
#include "server/scheduling/job.h"
#include "server/sender/job.h"

namespace colcast::sender {

struct SenderOptions {
  http2::Target target;
  std::string method;  // "/package.Service/Method"
  int connections = 8;
  std::chrono::nanoseconds timeout{std::chrono::seconds(10)};  // of a call, from when it is sent
  size_t keep_every = 0;   // calls whose number is a multiple keep their answers; 0: none
  SSL_CTX* tls = nullptr;  // null: in the clear
};

// Times in seconds since the run began.
struct CallRecord {
  double sent = 0;
  double answered = 0;
  uint32_t code = 0;  // StatusCode
  uint32_t answer_bytes = 0;
};

struct CodeErrors {
  int64_t count = 0;
  std::string first;  // message
};

struct Outcome {
  std::vector<CallRecord> calls;  // as in the job
  std::map<StatusCode, CodeErrors> errors;
  std::vector<std::pair<uint64_t, std::string>> answers;  // kept, by number of the call
  double seconds = 0;                                     // until the last answer
};

class Sender {
 public:
  // `job` outlives the sender.
  Sender(SenderOptions options, const Job& job);
  ~Sender();

  // Opens the connections. UNAVAILABLE if the target's name is unknown. A server that is not there
  // shows in the calls.
  Status Connect();
  // Sends all calls and waits for their ends. Once.
  Outcome Run();

 private:
  using Clock = scheduling::Clock;
  using CallPointer = http2::ClientConnection::CallPointer;
  struct Slot {
    std::shared_ptr<http2::ClientConnection> connection;
    Clock::time_point opened;
  };

  http2::ClientConnection::Events ConnectionEvents();
  void Open(Slot* slot);
  bool IsConnecting() const;
  void SendDue();
  void Start(uint64_t number);
  void Send(CallPointer call);
  void EndLate();
  void EndUnsent();
  void Ended(uint64_t number, const Status& status, const http2::Message& answer);
  Clock::time_point NextEvent() const;
  bool IsOpen(uint64_t number) const;
  double SecondsNow() const;

  const SenderOptions options_;
  const Job& job_;
  std::vector<http2::Address> addresses_;
  net::Poller poller_;
  std::vector<Slot> slots_;                                            // calls take them in turn
  std::vector<std::shared_ptr<http2::ClientConnection>> connections_;  // all there were
  Status connect_error_;

  Clock::time_point began_;
  uint64_t next_ = 0;                 // call that is due next
  uint64_t oldest_ = 0;               // call before which all have ended
  uint64_t open_ = 0;                 // calls that have been sent and have not ended
  std::vector<CallPointer> refused_;  // sent again, once
  std::vector<CallPointer> unsent_;   // there was no connection
  std::vector<http2::ClientConnection*> connection_of_;  // each call's
  Outcome outcome_;
};

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_SENDER_H_
