// What RFC 9112 asks of a server and the HTTP library leaves to its user.
#ifndef COLCAST_SERVER_HTTP1_FRAMING_H_
#define COLCAST_SERVER_HTTP1_FRAMING_H_

#include <string>
#include <string_view>

namespace colcast::http {

// Where a body ends must be known: reading on behind one that was misunderstood would take its
// bytes for the next request.
struct BadFraming {
  int code = 0;  // to answer with before the connection is closed; 0: nothing is wrong
  std::string why;
};

// `codings` is the value of Transfer-Encoding, of several fields joined by commas. "chunked" alone
// is understood; codings in front of it are 501, and anything else at the end is 400.
BadFraming CheckTransferEncoding(std::string_view codings);

// Whether a header in `bytes`, which begin within or before a request's header, goes on in a line
// that begins with a blank: proxies in front may read it as another (RFC 9112, 5.2).
bool HasFoldedLine(std::string_view bytes);

// The target without scheme and authority, which clients of a proxy send:
// "http://host:8501/v1/models/m" -> "/v1/models/m". Any other target as it is.
std::string OriginForm(std::string_view target);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_FRAMING_H_
