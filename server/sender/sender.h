// Open-loop load: sends each call when it is due, without waiting for earlier answers.
#ifndef COLCAST_SERVER_SENDER_SENDER_H_
#define COLCAST_SERVER_SENDER_SENDER_H_

#include <openssl/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/http2/client_connection.h"
#include "server/http2/target.h"
#include "server/net/poller.h"
#include "server/scheduling/request_queue.h"

namespace colcast::sender {

// The requests to send, and when.
struct Job {
  struct Call {
    double due;        // seconds after the run begins; ascending
    uint64_t request;  // index in `requests`
  };

  std::vector<std::string> requests;  // serialized
  std::vector<Call> calls;
};

// Reads, in this order: the number of requests; the size and the bytes of each request; the number
// of calls; `due` and `request` of each call. All numbers are 64-bit little-endian. Leaves later
// bytes unread. Returns INVALID_ARGUMENT if the input ends too early or a call is wrong.
Status ReadJob(std::FILE* file, Job* job);

struct SenderOptions {
  http2::Target target;
  std::string method;  // "/package.Service/Method"
  int connections = 8;
  // A call's timeout, measured from its sending.
  std::chrono::nanoseconds timeout{std::chrono::seconds(10)};
  size_t keep_every = 0;   // keeps the answer of every Nth call; 0 keeps none
  SSL_CTX* tls = nullptr;  // null for no encryption
};

// The times of a call, in seconds since the run began.
struct SentCall {
  double sent = 0;
  double answered = 0;
  uint32_t code = 0;  // StatusCode
  uint32_t answer_bytes = 0;
};

struct CodeErrors {
  int64_t count = 0;
  std::string first;  // the message of the first failed call
};

struct Outcome {
  std::vector<SentCall> calls;  // in the order of the job
  std::map<StatusCode, CodeErrors> errors;
  std::vector<std::pair<uint64_t, std::string>> answers;  // kept ones, with their call's number
  double seconds = 0;                                     // time until the last answer
};

class Sender {
 public:
  // `job` must outlive the sender.
  Sender(SenderOptions options, const Job& job);
  ~Sender();

  // Opens the connections. Returns UNAVAILABLE if the target's name cannot be resolved. Returns OK
  // if the server cannot be reached: the calls fail later.
  Status Connect();
  // Sends all calls and waits until they end. Call only once.
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
  std::vector<Slot> slots_;  // calls use them in turn
  // All connections, including closed ones.
  std::vector<std::shared_ptr<http2::ClientConnection>> connections_;
  Status connect_error_;

  Clock::time_point began_;
  uint64_t next_ = 0;                 // the next call to send
  uint64_t oldest_ = 0;               // all calls before this one have ended
  uint64_t open_ = 0;                 // number of calls that were sent and have not ended
  std::vector<CallPointer> refused_;  // the server refused them; they are sent once more
  std::vector<CallPointer> unsent_;   // not sent, because there was no connection
  std::vector<http2::ClientConnection*> connection_of_;  // the connection of each call
  Outcome outcome_;
};

// The figures as one line of JSON. A call's latency is the time from its due time to its answer;
// its lateness, from its due time to its sending.
std::string Figures(const Job& job, const Outcome& outcome);

// Serializes all SentCalls, then the number of kept answers, then each of them: its call's
// number, its size and its bytes. These numbers and sizes are 64-bit little-endian.
std::string Records(const Outcome& outcome);

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_SENDER_H_
