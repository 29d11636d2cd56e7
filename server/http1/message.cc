#include "server/http1/message.h"

#include <strings.h>
#include <zlib.h>

#include <algorithm>
#include <new>

#include "server/base/text.h"

namespace colcast::http {

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

namespace {

// Whether the weight in "coding;q=0.5" is above 0. A missing weight is 1.
bool HasWeight(std::string_view parameters) {
  const size_t at = parameters.find("q=");
  return at == std::string_view::npos ||
         parameters.find_first_of("123456789", at) != std::string_view::npos;
}

std::string_view Strip(std::string_view text) {
  constexpr char kBlanks[] = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

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
    // Replaces bytes of the request that JSON cannot hold.
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

bool AcceptsGzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const std::string_view entry = accept_encoding.substr(0, accept_encoding.find(','));
    accept_encoding.remove_prefix(std::min(entry.size() + 1, accept_encoding.size()));
    const size_t semicolon = std::min(entry.find(';'), entry.size());
    const std::string_view coding = Strip(entry.substr(0, semicolon));
    if (coding == "gzip" || coding == "*") return HasWeight(entry.substr(semicolon));
  }
  return false;
}

std::string Gzip(std::string_view text) {
  constexpr int kGzip = 16;  // added to the window bits: gzip format instead of zlib
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);
  compressed.resize(compressed.size() - stream.avail_out);
  deflateEnd(&stream);
  return compressed;
}

}  // namespace colcast::http
