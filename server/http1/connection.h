// A client's connection: HTTP/1 on a socket. Reads a request, waits for its answer, writes it, and
// so on. While a request is answered, nothing is read.
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
  std::atomic<bool> draining{false};  // connections close after their next answer
  std::atomic<bool> stopped{false};   // and take no more requests
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

  Connection(std::unique_ptr<net::Socket> socket, std::string peer, std::shared_ptr<Shared> shared,
             net::OpenConnections::Place place);

 private:
  using Clock = scheduling::Clock;
  // Read at once; also the most that a chunk's header or the trailers, which are read whole, can
  // be.
  static constexpr size_t kReadBytes = 64 << 10;
  enum OwnWork : unsigned { kAnswer = kOwn, kStop = 2 * kOwn, kDescribe = 4 * kOwn };
  // kIdle: no request has come, or not all of its header. kPipelined: as kIdle, and more of the
  // next request is in the buffer. kClosing: the last answer was written.
  enum class Phase { kIdle, kPipelined, kReadingBody, kAnswering, kWriting, kClosing, kClosed };
  // What the request's header says of the answer.
  struct AnswerForm {
    bool keep_alive = false;
    bool without_body = false;
    bool gzip = false;
  };

  net::Use DoNow(unsigned work) override;
  void DoAll(unsigned work);
  void Read();
  void ReadOnce();
  bool Flush();
  std::string_view Unsent() const;
  void Send(std::string_view text) { output_ += text; }
  void Write(Response response);
  void Written();
  void OnTimer();
  void CountAnswer();
  void ReturnUnread();
  void SetDeadline(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  void LingerAndClose();
  void Close() override;
  std::string Describe() const;

  // Requests, in connection_requests.cc.
  void BeginRequest();
  void Parse();
  void HeaderRead();
  void RequestRead();
  void ReadHead(const beast::http::request_header<>& head);
  void Refuse(const Error& error);
  void Refuse(int code, const std::string& why);
  std::string CallerOf(const beast::http::request_header<>& head) const;

  const std::shared_ptr<Shared> shared_;
  const net::OpenConnections::Place place_;  // a handler holds it, too
  const std::unique_ptr<net::Socket> socket_;
  const uint64_t client_;

  // Used only by the owning thread, except the request and its answer, which a handler has while it
  // answers.
  beast::flat_buffer buffer_;  // read, and not parsed yet
  std::optional<beast::http::request_parser<Body>> parser_;
  size_t header_bytes_ = 0;  // of the request, so far
  Request request_;
  int refused_with_ = 0;  // the code, once the body has come; 0: the request is served
  std::string refusal_;
  AnswerForm form_;
  Response answer_;
  size_t unread_ = 0;          // bytes of the answer that are counted as such
  std::string output_;         // begins with what is left of what was sent before
  std::string body_;           // follows it
  size_t sent_ = 0;            // of both together
  size_t body_in_output_ = 0;  // so many bytes at its end are the body's first
  Phase phase_ = Phase::kIdle;
  Clock::time_point began_;        // the request's body
  Clock::time_point deadline_;     // of the phase
  int ticks_without_reading_ = 0;  // by the client, of an answer
  std::string request_line_;       // for the log
  size_t next_read_ = kReadBytes;  // at most so many bytes: fewer after many small chunks
  net::Use use_;                   // of this turn
  bool readable_ = false;          // something may be there
  bool to_end_ = false;            // the end has come; no event announces it again
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_CONNECTION_H_
