#include <charconv>

#include "server/base/text.h"
#include "server/http2/client_connection.h"

namespace colcast::http2 {
namespace {

// Returns -1 if the text is not a number.
int NumberIn(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

// https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
StatusCode OfHttp(int status) {
  switch (status) {
    case 400:
      return StatusCode::kInternal;
    case 401:
      return StatusCode::kUnauthenticated;
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kUnknown;
  }
}

// The mapping of gRPC's PROTOCOL-HTTP2.md, under "Errors".
StatusCode OfHttp2(uint32_t error) {
  switch (error) {
    case NGHTTP2_REFUSED_STREAM:
      return StatusCode::kUnavailable;
    case NGHTTP2_CANCEL:
      return StatusCode::kCancelled;
    case NGHTTP2_ENHANCE_YOUR_CALM:
      return StatusCode::kResourceExhausted;
    case NGHTTP2_INADEQUATE_SECURITY:
      return StatusCode::kPermissionDenied;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

void ClientCall::AddHeader(std::string_view name, std::string_view value) {
  if (name == ":status") {
    http_status_ = NumberIn(value);
  } else if (name == "content-type") {
    content_type_ = value;
  } else if (name == "grpc-encoding") {
    reader_.set_encoding(std::string(value));
  } else if (name == "grpc-status") {
    grpc_status_ = value;
  } else if (name == "grpc-message") {
    grpc_message_ = PercentDecode(value);
  }
}

bool ClientCall::is_grpc() const { return http_status_ == 200 && IsGrpc(content_type_); }

bool ClientCall::Read(const std::shared_ptr<const void>& owner, const uint8_t* data, size_t size) {
  if (!is_grpc()) return true;  // the body may be an error page
  Status status;
  if (!reader_.has_message()) {
    size_t read = size;
    status = reader_.Read(owner, data, &read);
    size -= read;
  }
  if (status.ok() && size > 0) status = Internal("a unary call has one answer, but more arrived");
  if (status.ok()) return true;
  unreadable_ = std::move(status);
  return false;
}

void ClientCall::End(uint32_t http2_error) {
  Status status = StatusOf(http2_error);
  Message answer;
  if (status.ok()) answer = reader_.Take();
  answered_(std::move(status), std::move(answer));
}

Status ClientCall::StatusOf(uint32_t http2_error) const {
  if (unreadable_) return *unreadable_;
  if (grpc_status_ && is_grpc()) {
    const int code = NumberIn(*grpc_status_);
    if (code < 0 || code >= kNumStatusCodes) {
      return Error(StatusCode::kUnknown, "grpc-status ", *grpc_status_, ": ", grpc_message_);
    }
    if (code != 0) return {static_cast<StatusCode>(code), grpc_message_};
    return reader_.has_message() ? OkStatus()
                                 : Internal("the call ended before its answer was complete");
  }
  if (http2_error != NGHTTP2_NO_ERROR) {
    return Error(OfHttp2(http2_error), "the stream ended with HTTP/2 error ",
                 nghttp2_http2_strerror(http2_error));
  }
  return Error(OfHttp(http_status_), "HTTP status ", http_status_, " and content type \"",
               content_type_, "\", without a grpc-status");
}

}  // namespace colcast::http2
