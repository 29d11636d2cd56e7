// A connection to another server, for unary calls: an HTTP/2 session of nghttp2 on a socket. Used
// only by the thread that polls.
#ifndef COLCAST_SERVER_HTTP2_CLIENT_CONNECTION_H_
#define COLCAST_SERVER_HTTP2_CLIENT_CONNECTION_H_

#include <nghttp2/nghttp2.h>
#include <openssl/types.h>

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
#include "server/http2/transport.h"
#include "server/net/poller.h"
#include "server/scheduling/request_queue.h"

namespace colcast::http2 {

struct ClientRequest {
  std::string path;                                                // "/package.Service/Method"
  Message message;                                                 // not compressed
  std::vector<std::pair<std::string, std::string>> metadata = {};  // names in lower case
  scheduling::Clock::time_point deadline = scheduling::Clock::time_point::max();
};

// Receives the answer, or an error and no answer.
using ClientAnswered = std::function<void(Status status, Message answer)>;

// A call, and the part of its answer received so far.
class ClientCall {
 public:
  ClientCall(uint64_t number, ClientRequest request, ClientAnswered answered)
      : number(number), request(std::move(request)), answered_(std::move(answered)) {}

  const uint64_t number;
  const ClientRequest request;
  MessageWriter writer;      // writes the request
  bool is_sent = false;      // whether its headers have been sent
  bool was_refused = false;  // refused by a server before it started on the call

  // Process received data. Return false if the answer cannot be valid; the rest is then not read.
  void AddHeader(std::string_view name, std::string_view value);
  bool Read(const std::shared_ptr<const void>& owner, const uint8_t* data, size_t size);

  // Call one of these once: with nghttp2's error code if the stream has ended, otherwise with an
  // error.
  void End(uint32_t http2_error);
  void End(Status error) { answered_(std::move(error), Message()); }

 private:
  bool is_grpc() const;
  Status StatusOf(uint32_t http2_error) const;

  const ClientAnswered answered_;
  int http_status_ = 0;
  std::string content_type_;
  std::optional<std::string> grpc_status_;
  std::string grpc_message_;
  MessageReader reader_{INT32_MAX};  // protobuf's limit
  std::optional<Status> unreadable_;
};

class ClientConnection final : public net::Pollable {
 public:
  using CallPointer = std::unique_ptr<ClientCall>;
  struct Events {
    // Called when a call has ended; the receiver must call ClientCall::End().
    std::function<void(CallPointer, Status)> failed;
    std::function<void(CallPointer, uint32_t)> ended;
    // `refused` is called if the server refused the call before starting on it, `unsent` if the
    // call was never sent.
    std::function<void(CallPointer)> refused;
    std::function<void(CallPointer)> unsent;
    // Called if the connection could not be opened, with the reason.
    std::function<void(Status)> not_connected;
  };

  // The socket may still be connecting. `poller` must outlive the connection, and owns it until it
  // is closed. `tls` is a client's context; null means no encryption.
  static std::shared_ptr<ClientConnection> Start(int socket, std::string authority,
                                                 net::Poller* poller, Events events,
                                                 SSL_CTX* tls = nullptr);

  // Whether the connection was ever established.
  bool is_connected() const { return is_connected_; }
  // Whether new calls may be sent.
  bool takes_calls() const { return !closed_ && !going_away_; }
  void Send(CallPointer call);
  // Ends a call that was sent and is unfinished; false if there is no such call.
  bool Cancel(uint64_t number, Status status);
  // Sends pending output, as far as the socket accepts it.
  void Write();
  // Closes the connection and fails its calls.
  void Close(const Status& status);

  void Happened(uint32_t events) override;

  ClientConnection(int socket, std::string authority, net::Poller* poller, Events events,
                   SSL_CTX* tls);

 private:
  struct Callbacks;

  bool Begin(const std::shared_ptr<ClientConnection>& self);
  void Read();
  int32_t Submit(ClientCall* call);
  ClientCall* Find(int32_t stream) const;
  CallPointer Take(int32_t stream);

  int Data(int32_t stream, const uint8_t* data, size_t size);
  int StreamClosed(int32_t stream, uint32_t error);

  const std::string authority_;
  net::Poller* const poller_;
  const Events events_;
  Transport transport_;
  uint64_t number_ = 0;
  bool is_connected_ = false;
  bool going_away_ = false;  // announced by the server
  bool closed_ = false;
  std::unordered_map<int32_t, CallPointer> calls_;  // by stream
};

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_CLIENT_CONNECTION_H_
