// HTTP as the handlers see it: one request, one response, and the exchange that joins them.
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
#include "server/http1/slice_buffer.h"

namespace colcast::http {

struct Request {
  std::string method;
  std::string target;  // as sent: the path, still percent-encoded, and what follows a '?'
  std::unique_ptr<RequestMemory> memory;  // what the body counts in; may be null
  SliceBuffer body;                       // as sent: compressed if `gzip`
  bool gzip = false;                      // or zlib's form, which HTTP calls deflate
  std::string traceparent;                // as sent; empty: none
  std::string caller;                     // what the client says is its name; empty: nothing
  std::string inference_header_length;    // as sent, of Inference-Header-Content-Length
  bool has_body = true;  // false: nobody wanted it (Router::WantsBody), and it was passed over

  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
};

struct Response {
  int code = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string gzipped;  // the body, where it was compressed before; empty: not
  std::vector<std::pair<std::string, std::string>> headers;  // besides those of the body
};

// As TF Serving's http_server.cc maps them.
int HttpCode(StatusCode code);

// {"error": message}: every error's body, as in TF Serving.
Response ErrorResponse(int code, std::string_view message);
Response ErrorResponse(const Status& status);

// A request that waits for its response. All methods may be called from any thread.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // The handler's alone until it answers: it may move parts out of it.
  virtual Request& request() = 0;
  // Whose it is: the same for all of one host. Over HTTP/1 a client has a connection for each of
  // the requests that it has in flight. 0: not known.
  virtual uint64_t client() const { return 0; }
  // Whether the client has hung up.
  virtual bool cancelled() const = 0;
  // Must be called exactly once.
  virtual void Answer(Response response) = 0;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP1_MESSAGE_H_
