// The trace that a client says a request belongs to: https://www.w3.org/TR/trace-context/
#ifndef COLCAST_SERVER_TRACING_TRACE_CONTEXT_H_
#define COLCAST_SERVER_TRACING_TRACE_CONTEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace colcast::tracing {

struct TraceContext {
  std::string trace_id;   // 16 bytes
  std::string parent_id;  // 8 bytes: the span of the client
  bool sampled = false;
};

// None for a `traceparent` that is not exactly what the specification allows. Of versions to come
// the fields of version 00 are read.
std::optional<TraceContext> ParseTraceparent(std::string_view text);

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_TRACE_CONTEXT_H_
