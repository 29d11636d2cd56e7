// The trace to which a client says a request belongs: https://www.w3.org/TR/trace-context/
#ifndef COLCAST_SERVER_TRACING_TRACE_CONTEXT_H_
#define COLCAST_SERVER_TRACING_TRACE_CONTEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace colcast::tracing {

struct TraceContext {
  std::string trace_id;   // 16 bytes
  std::string parent_id;  // 8 bytes: the client's span
  bool sampled = false;
};

// Nothing unless `text` is exactly what the specification allows. Of later versions, the fields of
// version 00 are read.
std::optional<TraceContext> ParseTraceparent(std::string_view text);

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_TRACE_CONTEXT_H_
