// Sends a POST over HTTP/1.1, for the thread that exports spans.
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

// Parses "http://HOST[:PORT][/PATH]"; HOST may be an IPv6 address in brackets. INVALID_ARGUMENT,
// naming the URL, for anything else; TLS is not supported.
Status ParseEndpoint(const std::string& url, Endpoint* endpoint);

// UNAVAILABLE, naming the endpoint, unless it answers 2xx within `timeout` after its name is
// resolved.
Status PostProtobuf(const Endpoint& endpoint, const std::string& body,
                    std::chrono::milliseconds timeout);

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_HTTP_POST_H_
