// From the server's status to HTTP's.
#ifndef COLCAST_SERVER_HTTP_STATUS_MAPPING_H_
#define COLCAST_SERVER_HTTP_STATUS_MAPPING_H_

#include "server/wire/status.h"

namespace colcast::http {

// As TF Serving's http_server.cc maps them.
inline int HttpCode(StatusCode code) {
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

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_STATUS_MAPPING_H_
