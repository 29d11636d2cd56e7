// Open-loop load: sends each call when it is due, without waiting for earlier answers.
#ifndef COLCAST_SERVER_SENDER_SENDER_H_
#define COLCAST_SERVER_SENDER_SENDER_H_

#include <netdb.h>
#include <openssl/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/http2/transport.h"
#include "server/net/poller.h"
#include "server/scheduling/request_queue.h"

namespace colcast::sender {

using Clock = scheduling::Clock;

// The requests to send, and when.
struct Job {
  struct Call {
    double due;        // seconds after the run begins; ascending
    uint64_t request;  // index in `requests`
  };

  std::vector<std::string> requests;  // gRPC messages, each with its prefix
  std::vector<Call> calls;
};

struct Options {
  std::string target;                      // HOST:PORT
  std::vector<const addrinfo*> addresses;  // the target's; connections use them in turn
  std::string method;                      // "/package.Service/Method"
  uint64_t connections = 0;
  std::chrono::milliseconds timeout{};  // per call, starting when it is sent
  uint64_t keep_every = 0;              // keeps the answer of every Nth call; 0 keeps none
  SSL_CTX* tls = nullptr;               // null for no encryption
};

// The times of a call, in seconds since the run began.
struct SentCall {
  double sent;
  double answered;
  uint32_t code;  // StatusCode
  uint32_t answer_bytes;
};

struct Outcome {
  double seconds = 0;                                     // time until the last answer
  std::vector<SentCall> calls;                            // in the order of the job
  std::vector<std::pair<uint64_t, std::string>> answers;  // kept answers, by call number
  std::string first_error;  // "CODE: message" of the call that failed first, or empty
};

// The received part of an answer.
class Answer {
 public:
  void AddHeader(std::string_view name, std::string_view value);
  void AddData(const uint8_t* data, size_t size);
  // The status of a call whose stream ended with this HTTP/2 error code.
  Status StatusOf(uint32_t http2_error) const;
  // The message. REQUIRES that the status is OK.
  std::string_view message() const;

 private:
  int http_status_ = 0;
  std::string content_type_;
  std::optional<int> grpc_status_;
  std::string grpc_message_;
  std::string body_;
};

struct Call {
  uint64_t number;             // index in the job
  const std::string* request;  // a gRPC message with its prefix
  size_t bytes_sent = 0;
  Clock::time_point deadline{};
  Answer answer{};
};

// A connection to the server: an HTTP/2 session of nghttp2 on a socket.
class Connection final : public net::Pollable {
 public:
  using Ended = std::function<void(const Call&, const Status&)>;

  // Connects to the address. If that fails, now or later, the connection is closed. `options` and
  // `poller`, which owns the connection until it is closed, must outlive it.
  static std::shared_ptr<Connection> Start(const Options& options, const addrinfo& address,
                                           net::Poller* poller, Ended ended);
  Connection(const Options& options, int socket, net::Poller* poller, Ended ended);

  Clock::time_point started() const { return started_; }
  bool is_connecting() const { return !is_connected_ && error_.ok(); }
  bool takes_calls() const { return error_.ok() && !is_going_away_; }
  // Sends the call, or ends it if the connection takes no calls.
  void Send(Call call);
  // Ends calls whose deadline has passed. Returns the next deadline.
  Clock::time_point EndLate(Clock::time_point now);

  void Happened(uint32_t events) override;

 private:
  struct Callbacks;

  Call* Find(int32_t stream);
  void Read();
  void Write();
  void Close(const Status& reason);

  const Options& options_;
  net::Poller* const poller_;
  const Ended ended_;
  const Clock::time_point started_ = Clock::now();
  http2::Transport transport_;
  uint64_t number_ = 0;
  bool is_connected_ = false;
  bool is_going_away_ = false;     // no more calls can be sent
  Status error_;                   // why the connection was closed
  std::map<int32_t, Call> calls_;  // keyed by stream id, which ascends in sending order
};

class Sender {
 public:
  // Both arguments must outlive the sender.
  Sender(const Options& options, const Job& job);

  // Opens the connections. Waits at most a few seconds for a server that does not answer; calls to
  // it fail later.
  void Connect();
  // Sends all calls and waits until they end. Call only once.
  Outcome Run();

 private:
  std::shared_ptr<Connection> Open();
  void Send(uint64_t number);
  void End(const Call& call, const Status& status);
  Clock::time_point NextEvent();
  double SecondsNow() const;

  const Options& options_;
  const Job& job_;
  net::Poller poller_;
  size_t opened_ = 0;                                     // number of connections so far
  std::vector<std::shared_ptr<Connection>> connections_;  // calls use them in turn
  Clock::time_point began_;
  size_t next_ = 0;   // the next call to send
  size_t ended_ = 0;  // number of calls that have ended
  Outcome outcome_;
};

}  // namespace colcast::sender

#endif  // COLCAST_SERVER_SENDER_SENDER_H_
