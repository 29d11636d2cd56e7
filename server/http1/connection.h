// A client's HTTP/1 connection. It reads a request, waits for its answer, writes it, and only then
// reads the next one.
//
// Used only by server.cc, so that everything else stays free of Boost.
#ifndef COLCAST_SERVER_HTTP1_CONNECTION_H_
#define COLCAST_SERVER_HTTP1_CONNECTION_H_

#include <time.h>

#include <atomic>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/base/status.h"
#include "server/http1/message.h"
#include "server/http1/request_memory.h"
#include "server/http1/server.h"
#include "server/net/connection.h"
#include "server/net/poller.h"
#include "server/net/socket.h"

namespace colcast::http {

namespace beast = boost::beast;
using Error = boost::system::error_code;
using Field = beast::http::field;

inline std::string_view ToStd(beast::string_view text) { return {text.data(), text.size()}; }

// The current time in the form of HTTP's Date header.
inline std::string HttpTime() {
  const time_t now = time(nullptr);
  tm parts;
  char text[40];
  return std::string(
      text, strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts)));
}

// Receives a body: keeps it, or skips it if it is unwanted or there is no memory for it.
class IncomingBody {
 public:
  // Keeps the body; without this call it is skipped.
  void KeepIn(std::unique_ptr<RequestMemory> memory) {
    memory_ = std::move(memory);
    bytes_ = CountedBytes(memory_.get());
  }

  void Append(const void* data, size_t size) {
    ++appends_;
    received_ += size;
    if (memory_ == nullptr || !refusal_.ok()) return;
    refusal_ = WithinMemory([&] {
      try {
        bytes_.Append(data, size);
        return OkStatus();
      } catch (const OverMemoryLimit&) {
        return memory_->Refusal(&too_large_);
      }
    });
    if (!refusal_.ok()) bytes_.Clear();
  }

  size_t received() const { return received_; }
  int appends() const { return appends_; }  // number of chunks or reads
  // Why the body was not kept. If too_large(), retrying is useless.
  const Status& refusal() const { return refusal_; }
  bool too_large() const { return too_large_; }

  void MoveTo(Request* request) {
    request->has_body = memory_ != nullptr;
    request->body = std::move(bytes_);
    request->memory = std::move(memory_);
  }

 private:
  std::unique_ptr<RequestMemory> memory_;
  CountedBytes bytes_;
  size_t received_ = 0;
  int appends_ = 0;
  Status refusal_;
  bool too_large_ = false;
};

// Like Beast's string_body, but allocates memory for the bytes received, not the size announced.
struct Body {
  using value_type = IncomingBody;

  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(beast::http::header<isRequest, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, Error& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, Error& error) {
      error = {};
      size_t size = 0;
      for (const auto buffer : beast::buffers_range_ref(buffers)) {
        body_.Append(buffer.data(), buffer.size());
        size += buffer.size();
      }
      return size;
    }
    void finish(Error& error) { error = {}; }

   private:
    value_type& body_;
  };
};

// State shared by all connections of a server.
struct Shared {
  Shared(const HttpServer::Options& options, const Router* router, net::Poller* poller)
      : options(options), router(*router), poller(poller) {}

  const HttpServer::Options options;
  const Router& router;       // must outlive every connection
  net::Poller* const poller;  // must outlive every connection
  net::OpenConnections connections;
  std::atomic<bool> draining{false};  // connections close after their next answer
  // Whether connections accept no more requests at all.
  bool is_stopped() const { return connections.phase() != net::OpenConnections::Phase::kServing; }
};

class Connection final : public net::Connection, public Exchange {
 public:
  // Serves the socket from now on, or closes it if the server's phase requires it.
  static void Start(std::unique_ptr<net::Socket> socket, std::string peer,
                    std::shared_ptr<Shared> shared);

  // Exchange
  Request& request() override { return request_; }
  uint64_t client() const override { return client_; }
  bool cancelled() const override;
  Status CheckClientReads(net::Budget::Clock::time_point since) const override;
  Status CountAnswer(size_t bytes) override { return unread_.Count(bytes); }
  void Answer(Response response) override;

  // Closes the connection now or, if a request is in flight, after its answer.
  void Stop() { Do(kStop); }

  Connection(std::unique_ptr<net::Socket> socket, std::string peer, std::shared_ptr<Shared> shared);

 private:
  using Clock = scheduling::Clock;
  // Bytes per read; also the limit for a chunk's header and for trailers, because the parser needs
  // the whole header or all trailers at once.
  static constexpr size_t kReadBytes = 64 << 10;
  enum OwnWork : unsigned { kAnswer = kOwn, kStop = 2 * kOwn };
  // kIdle waits for a request's header. In kPipelined, bytes of the next request are already in the
  // buffer; they are parsed after other connections have had their turn. In kClosing the last
  // answer has been written.
  enum class Phase { kIdle, kPipelined, kReadingBody, kAnswering, kWriting, kClosing, kClosed };
  // Properties of the answer that the request's header determines.
  struct AnswerForm {
    bool keep_alive = false;
    bool http10 = false;  // the client expects a close unless the answer says keep-alive
    bool without_body = false;
    bool gzip = false;
  };

  void DoNow(unsigned work) override;
  void DoAll(unsigned work);
  void Read();
  void ReadOnce(size_t most);
  bool Flush();
  std::string_view Unsent() const;
  void Send(std::string_view text) { output_ += text; }
  void Write(Response response);
  void Written();
  void OnTimer();
  void SetDeadline(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  void LingerAndClose();
  void Close() override;
  bool IsIdle() const override {
    const bool is_reading = phase_ == Phase::kReadingBody && had_call();
    return !is_reading && phase_ != Phase::kAnswering && phase_ != Phase::kWriting;
  }

  // Handling of requests, in connection_requests.cc.
  void BeginRequest();
  void Parse();
  void HeaderRead();
  void RequestRead();
  void ReadHead(const beast::http::request_header<>& head);
  void Refuse(const Error& error);
  void Refuse(int code, const std::string& why);

  const std::shared_ptr<Shared> shared_;
  // Released when no handler holds the connection.
  const net::OpenConnections::Place place_ = shared_->connections.Add();
  const std::unique_ptr<net::Socket> socket_;
  const uint64_t client_;

  // Used only by the owning thread, except that request_ and answer_ belong to the handler until it
  // answers.
  beast::flat_buffer buffer_;  // received and not yet parsed
  std::optional<beast::http::request_parser<Body>> parser_;
  size_t header_bytes_ = 0;  // size of the request's header so far
  Request request_;
  int refused_with_ = 0;  // status to send once the body has arrived; 0 if the request is served
  std::string refusal_;
  AnswerForm form_;
  Response answer_;
  net::UnreadAnswer unread_{&poller().hosts(), host().get()};
  std::string output_;  // may begin with an unsent "100 Continue"
  std::string body_;    // sent after output_
  size_t sent_ = 0;     // bytes sent of output_ and body_ together
  // How many bytes at the beginning of body_ are already at the end of output_.
  size_t body_in_output_ = 0;
  Phase phase_ = Phase::kIdle;
  Clock::time_point began_;        // start of the request's body
  Clock::time_point deadline_;     // end of the current phase
  int ticks_without_reading_ = 0;  // successive ticks in which the client read nothing
  bool readable_ = false;          // the socket may have data
  bool to_end_ = false;            // the peer has closed; no further event will announce it
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_CONNECTION_H_
