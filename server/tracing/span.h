// A span that waits for export.
#ifndef COLCAST_SERVER_TRACING_SPAN_H_
#define COLCAST_SERVER_TRACING_SPAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace colcast::tracing {

enum class SpanKind { kInternal = 1, kServer = 2 };  // OTLP's numbers

using Attribute = std::pair<const char*, std::variant<int64_t, bool, std::string>>;

struct Span {
  std::string trace_id;   // 16 bytes
  std::string id;         // 8 bytes
  std::string parent_id;  // 8 bytes; empty for the first span of a trace
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  int64_t start = 0;  // nanoseconds since 1970
  int64_t end = 0;
  std::vector<Attribute> attributes;
  bool failed = false;
};

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_SPAN_H_
