// One POST over HTTP/1.1, for the thread that exports spans.
#ifndef COLCAST_SERVER_TRACING_HTTP_POST_H_
#define COLCAST_SERVER_TRACING_HTTP_POST_H_

#include <chrono>
#include <string>

#include "server/base/status.h"

namespace colcast::tracing {

struct Endpoint {
  std::string host;
  std::string port = "80";
  std::string target = "/";
};

// Reads "http://HOST[:PORT][/PATH]"; HOST may be an IPv6 address in brackets. INVALID_ARGUMENT,
// naming the URL, for all else: there is no TLS.
Status ParseEndpoint(const std::string& url, Endpoint* endpoint);

// UNAVAILABLE, naming the endpoint, unless it answers 2xx within `timeout`, its name resolved.
Status PostProtobuf(const Endpoint& endpoint, const std::string& body,
                    std::chrono::milliseconds timeout);

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_HTTP_POST_H_
