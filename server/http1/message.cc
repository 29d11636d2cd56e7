#include "server/http1/message.h"

#include <strings.h>

#include <algorithm>

#include "server/base/text.h"

namespace colcast::http {

namespace {

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// Removes spaces and tabs around the text.
std::string_view Strip(std::string_view text) {
  constexpr char kBlanks[] = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

BadFraming CheckTransferEncoding(std::string_view codings) {
  constexpr std::string_view kChunked = "chunked";
  codings = Strip(codings);
  if (EqualIgnoringCase(codings, kChunked)) return {};
  const size_t comma = codings.rfind(',');
  const std::string_view last =
      comma == std::string_view::npos ? codings : codings.substr(comma + 1);
  const std::string what = "Transfer-Encoding " + std::string(codings) + ": expected chunked";
  return {EqualIgnoringCase(Strip(last), kChunked) ? 501 : 400, what};
}

bool HasFoldedLine(std::string_view bytes) {
  constexpr std::string_view kEnd = "\r\n";
  if (bytes.substr(0, kEnd.size()) == kEnd) return false;
  bytes = bytes.substr(0, bytes.find("\r\n\r\n"));
  return bytes.find("\n ") != std::string_view::npos ||
         bytes.find("\n\t") != std::string_view::npos;
}

std::string OriginForm(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualIgnoringCase(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = target.find_first_of("/?");
    if (end == std::string_view::npos) return "/";
    const std::string path(target.substr(end));
    return path.front() == '/' ? path : '/' + path;
  }
  return std::string(target);
}

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
    // Bytes of the request that JSON cannot hold.
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
