// A client's call of a unary or streaming method. Messages are uninterpreted bytes.
#ifndef COLCAST_SERVER_HTTP2_CALL_H_
#define COLCAST_SERVER_HTTP2_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/http2/grpc.h"
#include "server/net/hosts.h"
#include "server/scheduling/request_queue.h"

namespace colcast::http2 {

class Call;
class Connection;

// A method has either `handle` (unary) or `open` (any number of answers to one request). Both must
// return soon.
struct Method {
  // Handles a call, and must finish it now or later.
  std::function<void(Call*)> handle = {};
  // Returns an object that may send answers. It is destroyed when the call ends.
  std::function<std::shared_ptr<void>(Call*)> open = {};
};
using Methods = std::unordered_map<std::string, Method>;  // by path: "/package.Service/Method"

// Owns itself: a unary call until it is finished, a streaming call until it has ended.
class Call {
 public:
  scheduling::Clock::time_point deadline() const { return deadline_; }  // max() for none
  // The value of a header from the client; nullopt for headers of HTTP and gRPC, and for trailers.
  // Of a repeated header, returns the last value, which the nearest proxy added.
  std::optional<std::string> Metadata(std::string_view name) const;
  const Connection& connection() const { return *connection_; }
  // Whether the client has hung up.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // The request as received, possibly compressed.
  const Message& request() const { return request_; }
  // Inflates a compressed request, whose bytes count towards its host's memory until they are
  // freed. Errors are those of Inflate(), RESOURCE_EXHAUSTED if the host has no memory left
  // (--max_rest_bytes), and CANCELLED once the client has hung up.
  Status InflateRequest(size_t max_bytes);
  Message* response() { return &response_; }

  // Returns RESOURCE_EXHAUSTED if the client's host has too many unread answers to add one for a
  // call received at `since`.
  Status CheckClientReads(scheduling::Clock::time_point since) const;
  // Counts a response of `bytes` as unread, before memory is allocated for it. Errors are those of
  // CheckClientReads().
  Status CountResponse(size_t bytes) { return unread_.Count(bytes); }

  // Sends a header along with the status. Call before Finish().
  void AddTrailer(std::string name, std::string value) {
    trailers_.emplace_back(std::move(name), std::move(value));
  }

  // Sends response(), or the status if that is an error. Call once, on any thread; the call may be
  // destroyed when this returns. A response that CountResponse() has not counted is counted now; if
  // that fails, the error is sent instead. In a streaming method, ends the call after the message
  // that is being sent, and has no effect if the call has ended.
  void Finish(Status status);

  // Sends a message of a streaming method. May be called on any thread. While an earlier message is
  // being sent, this one waits and replaces any other that waits.
  void Send(Message message);

 private:
  friend class Connection;

  Call(std::shared_ptr<Connection> connection, int32_t id);
  ~Call() = default;
  bool is_stream() const { return method_ != nullptr && method_->open; }
  void AddHeader(std::string_view name, std::string_view value);
  void Release();

  const std::shared_ptr<Connection> connection_;
  const int32_t id_;
  size_t place_ = 0;  // index in the connection's calls
  std::atomic<bool> cancelled_{false};
  std::atomic<int> holders_{1};  // the stream, and the call's handler

  // The received request.
  std::string path_;
  std::string http_method_;
  std::optional<std::string> bad_timeout_;
  std::string content_type_;
  size_t header_bytes_ = 0;
  std::vector<std::pair<std::string, std::string>> metadata_;
  scheduling::Clock::time_point deadline_ = scheduling::Clock::time_point::max();
  const Method* method_ = nullptr;
  MessageReader reader_;
  bool has_ended_ = false;  // nothing more is read: the call has its request, or was refused
  Message request_;
  std::shared_ptr<void> stream_;  // what `open` returned

  std::vector<std::pair<std::string, std::string>> trailers_;

  // The output, guarded by the connection's answers_mutex_.
  std::optional<Message> next_;
  std::optional<Status> last_;
  bool is_answered_ = false;  // last_ was sent, or cannot be sent

  // Used only by the thread that owns the connection.
  bool has_headers_sent_ = false;
  Message response_;
  MessageWriter writer_;

  net::UnreadAnswer unread_;  // used by any thread, because the client may hang up at any time
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_CALL_H_
