// HTTP in the form that handlers see: a request, a response, and the exchange that connects them.
#ifndef COLCAST_SERVER_HTTP1_MESSAGE_H_
#define COLCAST_SERVER_HTTP1_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/status.h"
#include "server/http1/request_memory.h"

namespace colcast::http {

// The functions down to OriginForm() implement requirements of RFC 9112 that the HTTP library
// leaves to its user.

// Whether a header is folded: continued on a line that begins with a blank. Proxies may interpret
// such lines differently (RFC 9112, 5.2). `bytes` must begin in or before a request's header.
bool HasFoldedLine(std::string_view bytes);

// Removes a target's scheme and authority, which clients send to proxies:
// "http://host:8501/v1/models/m" becomes "/v1/models/m". Other targets stay unchanged.
std::string OriginForm(std::string_view target);

bool EqualIgnoringCase(std::string_view a, std::string_view b);

struct Request {
  std::string method;
  std::string target;  // as sent: the percent-encoded path and, after a '?', the query
  std::unique_ptr<RequestMemory> memory;  // counts the body's memory; may be null
  CountedBytes body;                      // as sent, so compressed if `gzip`
  // Whether the body is compressed, with gzip or in zlib's format (HTTP's "deflate").
  bool gzip = false;
  std::string traceparent;  // as sent; empty if missing
  std::string caller;       // name of the caller; empty if unknown
  bool has_body = true;     // false if the body was not wanted (Router::WantsBody) and was skipped
  bool any_origin = false;  // set by the handler: web pages of any origin may read the answer

  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
};

struct Response {
  int code = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string gzipped;  // the body compressed with gzip, if already available
  // Further headers. The server itself adds the headers that describe the body.
  std::vector<std::pair<std::string, std::string>> headers;
};

// Maps a status code as TF Serving's http_server.cc does.
int HttpCode(StatusCode code);

// A response with the body {"error": message}, the form of all errors in TF Serving.
Response ErrorResponse(int code, std::string_view message);
Response ErrorResponse(const Status& status);

// Whether an Accept-Encoding header names gzip or "*" with a weight above 0.
bool AcceptsGzip(std::string_view accept_encoding);

// Optimizes for speed rather than size.
std::string Gzip(std::string_view text);

// A request waiting for its response. All methods may be called from any thread.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Belongs to the handler until it answers. The handler may move members out of it.
  virtual Request& request() = 0;
  // Identifies the client's host, not its connection: an HTTP/1 client opens a connection for each
  // request in flight. 0 if unknown.
  virtual uint64_t client() const { return 0; }
  // Whether the client has hung up.
  virtual bool cancelled() const = 0;
  // See http2::Call::CheckClientReads().
  virtual Status CheckClientReads(net::Budget::Clock::time_point /*since*/) const {
    return OkStatus();
  }
  // Counts an answer of `bytes` as unread, replacing an earlier count. Call it before encoding a
  // large answer, so that no work is lost if there is no room. Errors are those of
  // CheckClientReads(). Answer() counts again.
  virtual Status CountAnswer(size_t /*bytes*/) { return OkStatus(); }
  // Must be called exactly once.
  virtual void Answer(Response response) = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_MESSAGE_H_
