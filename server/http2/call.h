// A call that a client makes, of a unary or of a streaming method; messages stay bytes.
#ifndef COLCAST_SERVER_HTTP2_CALL_H_
#define COLCAST_SERVER_HTTP2_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/http2/message.h"
#include "server/http2/message_reader.h"
#include "server/http2/message_writer.h"
#include "server/scheduling/job.h"

namespace colcast::http2 {

class Call;
class Connection;

// The handler of one call of a streaming method. Nothing runs at the same time as another for one
// call; a connection's other calls wait meanwhile.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // For each Call::Read() one of the two: a message has arrived, or none will.
  virtual void Received(const Message& message) = 0;
  virtual void Closed() = 0;
  // Nothing waits to be sent.
  virtual void Sent() {}
};

// One of the two.
struct Method {
  // Finishes the call, now or later. Returns soon.
  std::function<void(Call*)> handle = {};
  std::function<std::unique_ptr<StreamHandler>(Call*)> open = {};
};
using Methods = std::unordered_map<std::string, Method>;  // by path: "/package.Service/Method"

// Owns itself: a unary one until it has been finished, a streaming one until it has ended.
class Call {
 public:
  scheduling::Clock::time_point deadline() const { return deadline_; }  // max(): none
  // A header of the client's, except those of HTTP and gRPC; if repeated, the last one, which is
  // the nearest proxy's. Trailers do not count.
  std::optional<std::string> Metadata(std::string_view name) const;
  const std::string& peer() const;  // server/net/peer.h
  // Empty: the client has shown no certificate with a name.
  const std::string& certificate_name() const;
  // The same for all calls of one connection.
  uint64_t connection() const;
  // Whether the client has gone.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Of a unary method. The request as received, perhaps compressed.
  const Message& request() const { return request_; }
  void set_request(Message request) { request_ = std::move(request); }
  Message* response() { return &response_; }

  // RESOURCE_EXHAUSTED if its host has left too many answers unread.
  Status CheckClientReads() const;
  // Counts a response of `bytes` as unread, before memory is taken for it. Errors as
  // CheckClientReads().
  Status CountResponse(size_t bytes);

  // Sends a header with the status. Before Finish().
  void AddTrailer(std::string name, std::string value) {
    trailers_.emplace_back(std::move(name), std::move(value));
  }

  // Sends response(), or the status if that is an error. Once, on any thread; the call may be gone
  // when this returns. A response that was not counted is, and is not sent if that is an error.
  void Finish(Status status);

  // Of a streaming method, for its handler: asks for the next message. The first one comes unasked.
  void Read() { wants_message_ = true; }
  // The same, on any thread as long as the handler lives. Where the message before is still on its
  // way, this one waits, in place of one that waits already.
  void Send(Message message);
  // Ends the call, when the message that is on its way has been sent.
  void End(Status status);

 private:
  friend class Connection;

  enum class Phase {
    kReceiving,
    kAllReceived,  // the client of a stream has ended its side
    kEnded,        // nothing more is read: refused, or a unary call has its request
  };

  Call(std::shared_ptr<Connection> connection, int32_t id);
  ~Call();
  bool has_ended() const { return phase_ == Phase::kEnded; }
  void AddHeader(std::string_view name, std::string_view value);
  void CountNoResponse();
  void Release();

  const std::shared_ptr<Connection> connection_;
  const int32_t id_;
  size_t place_ = 0;  // among the connection's
  std::atomic<bool> cancelled_{false};
  std::atomic<int> holders_{1};  // the stream, and the handler of the call

  // What came.
  std::string path_;
  std::string http_method_;
  std::optional<std::string> bad_timeout_;
  std::string content_type_;
  size_t header_bytes_ = 0;
  std::vector<std::pair<std::string, std::string>> metadata_;
  scheduling::Clock::time_point deadline_ = scheduling::Clock::time_point::max();
  const Method* method_ = nullptr;
  MessageReader reader_;
  Phase phase_ = Phase::kReceiving;
  Message request_;

  // Received messages of a stream that its handler has not asked for.
  std::unique_ptr<StreamHandler> handler_;
  std::deque<Message> received_;
  size_t held_bytes_ = 0;  // for which the client gets no room yet
  bool wants_message_ = true;

  std::vector<std::pair<std::string, std::string>> trailers_;

  // The output; guarded by the lock of the connection's answers.
  std::optional<Message> next_;
  std::optional<Status> last_;
  bool is_answered_ = false;  // last_ was sent, or cannot be

  // Used only by the thread that owns the connection.
  bool has_headers_sent_ = false;
  Message response_;
  MessageWriter writer_;

  // The bytes of the answer that count as unread. Any thread: the client may hang up meanwhile.
  std::atomic<size_t> counted_bytes_{0};
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_CALL_H_
