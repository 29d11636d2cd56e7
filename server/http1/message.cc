#include "server/http1/message.h"

#include <algorithm>

#include "server/base/text.h"

namespace colcast::http {

int HttpCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kOutOfRange:
      return 400;
    case StatusCode::kUnauthenticated:
      return 401;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kAlreadyExists:
    case StatusCode::kAborted:
      return 409;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kCancelled:
      return 499;
    case StatusCode::kUnimplemented:
      return 501;
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    case StatusCode::kUnknown:
    case StatusCode::kInternal:
    case StatusCode::kDataLoss:
      return 500;
  }
  return 500;
}

Response ErrorResponse(int code, std::string_view message) {
  std::string text(message);
  if (!IsValidUtf8(text)) {
    // Bytes that the request sent and that JSON cannot hold.
    std::replace_if(
        text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  }
  Response response;
  response.code = code;
  response.body = "{ \"error\": ";
  AppendJsonString(text, &response.body);
  response.body += " }";
  return response;
}

Response ErrorResponse(const Status& status) {
  return ErrorResponse(HttpCode(status.code), status.message);
}

}  // namespace colcast::http
