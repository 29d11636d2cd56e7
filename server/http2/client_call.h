// A unary call to another server, and the part of its answer received so far.
#ifndef COLCAST_SERVER_HTTP2_CLIENT_CALL_H_
#define COLCAST_SERVER_HTTP2_CLIENT_CALL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/http2/grpc.h"
#include "server/scheduling/request_queue.h"

namespace colcast::http2 {

struct ClientRequest {
  std::string path;  // "/package.Service/Method"
  Message message;   // sent unchanged, compressed or not
  std::vector<std::pair<std::string, std::string>> metadata = {};  // names in lower case
  scheduling::Clock::time_point deadline = scheduling::Clock::time_point::max();
};

// Receives the answer, or an error and no answer.
using ClientAnswered = std::function<void(Status status, Message answer)>;

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

}  // namespace colcast::http2

#endif  // COLCAST_SERVER_HTTP2_CLIENT_CALL_H_
