// Checks that RFC 9112 requires of a server and that the HTTP library leaves to its user.
#ifndef COLCAST_SERVER_HTTP1_FRAMING_H_
#define COLCAST_SERVER_HTTP1_FRAMING_H_

#include <string>
#include <string_view>

namespace colcast::http {

// An error in how the body's end is given. The connection must then be closed, because bytes of a
// misunderstood body could be read as the next request.
struct BadFraming {
  int code = 0;  // status code of the answer before closing; 0 if nothing is wrong
  std::string why;
};

// `codings` is the value of Transfer-Encoding, with repeated fields joined by commas. Only
// "chunked" is supported: codings before it are answered 501, anything else at the end 400.
BadFraming CheckTransferEncoding(std::string_view codings);

// Whether a header in `bytes`, which begin in or before a request's header, continues in a line
// that starts with a blank. Proxies in front may interpret it differently (RFC 9112, 5.2).
bool HasFoldedLine(std::string_view bytes);

// Removes scheme and authority from a target, as clients of a proxy send it:
// "http://host:8501/v1/models/m" becomes "/v1/models/m". Other targets stay unchanged.
std::string OriginForm(std::string_view target);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_FRAMING_H_
