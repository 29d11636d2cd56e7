// A client's connection: HTTP/1 on a socket. Reads a request, waits for its answer, writes it, and
// so on. Nothing is read while a request is answered.
//
// For server.cc only: everything else stays free of Boost.
#ifndef COLCAST_SERVER_HTTP1_CONNECTION_H_
#define COLCAST_SERVER_HTTP1_CONNECTION_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/http1/beast_message.h"
#include "server/http1/server.h"
#include "server/net/connection.h"
#include "server/net/open_connections.h"
#include "server/net/poller.h"
#include "server/net/socket.h"

namespace colcast::http {

// What the connections of a server have in common.
struct Shared {
  Shared(const HttpServer::Options& options, const Router* router, net::Poller* poller)
      : options(options),
        router(*router),
        poller(poller),
        memory(options.max_memory_bytes),
        connections(options.max_connections) {}

  const HttpServer::Options options;
  const Router& router;       // outlives every connection
  net::Poller* const poller;  // outlives every connection
  MemoryLimit memory;
  net::OpenConnections connections;
  std::atomic<bool> draining{false};  // connections are to close after their next answer
  std::atomic<bool> stopped{false};   // and to take no more requests
};

class Connection final : public net::Connection, public Exchange {
 public:
  // Serves the socket from now on, if there is room for another one.
  static void Start(std::unique_ptr<net::Socket> socket, std::string peer,
                    std::shared_ptr<Shared> shared);

  // Exchange
  Request& request() override { return request_; }
  uint64_t client() const override { return client_; }
  bool cancelled() const override;
  void Answer(Response response) override;

  // Closes it now, or after the answer if a request is in flight.
  void Stop() { Do(kStop); }
  // Closes it whatever is in flight and, if `log`, says in the log what was.
  void Cut(bool log) { Do(log ? unsigned{kDescribe} | kClose : kClose); }

  // Implementation details follow.
  Connection(std::unique_ptr<net::Socket> socket, std::string peer, std::shared_ptr<Shared> shared,
             net::OpenConnections::Place place);

 private:
  using Clock = scheduling::Clock;
  // Read at once; also the most that a chunk's header or the trailers, which are read whole, can
  // be.
  static constexpr size_t kReadBytes = 64 << 10;
  enum OwnWork : unsigned { kAnswer = kOwn, kStop = 2 * kOwn, kDescribe = 4 * kOwn };
  // kIdle: no request has come, or not all of its header. kClosing: the last answer was written.
  enum class Phase { kIdle, kReadingBody, kAnswering, kWriting, kClosing };

  Sent DoNow(unsigned work) override;
  void DoAll(unsigned work);
  void Read();
  void ReadOnce();
  bool Flush();
  std::string_view Unsent() const;
  void Send(std::string_view text) { output_ += text; }
  void Write(Response response);
  void Written();
  void SetDeadline(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  void LingerAndClose();
  void Close() override;
  std::string Describe() const;

  // Requests, in connection_requests.cc.
  void BeginRequest();
  void Parse();
  void HeaderRead();
  void RequestRead();
  void Refuse(const Error& error);
  void Refuse(int code, const std::string& why);
  std::string CallerOf(const beast::http::request_header<>& head) const;

  const std::shared_ptr<Shared> shared_;
  const net::OpenConnections::Place place_;  // a handler holds it, too
  const std::unique_ptr<net::Socket> socket_;
  const uint64_t client_;

  // Of the thread that has the connection, but for what a handler has while it answers: the
  // request, and its answer.
  beast::flat_buffer buffer_;  // read, and not understood yet
  std::optional<beast::http::request_parser<Body>> parser_;
  size_t header_bytes_ = 0;  // of the request, so far
  Request request_;
  Response answer_;
  std::string output_;         // begins with what is left of what was sent before
  std::string body_;           // follows it
  size_t sent_ = 0;            // of both together
  size_t body_in_output_ = 0;  // so many bytes at its end are the body's first
  Phase phase_ = Phase::kIdle;
  Clock::time_point deadline_;  // of the phase
  std::string request_line_;    // for the log
  bool readable_ = false;       // something may be there
  bool reads_ = false;          // something, in this turn
  bool is_useful_ = false;      // this turn: a request came or was answered, or a part of a body
  bool to_end_ = false;         // which has come, and has no event of its own
  bool pipelined_ = false;      // a request, or its beginning, is in the buffer
  bool keep_alive_ = false;
  bool head_ = false;
  bool accepts_gzip_ = false;
  bool closed_ = false;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_CONNECTION_H_
