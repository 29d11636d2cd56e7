// Serializes spans as OTLP: opentelemetry/proto/collector/trace/v1/trace_service.proto, whose field
// numbers are stable. Written by hand, because no package here has the generated classes.
#ifndef COLCAST_SERVER_TRACING_OTLP_H_
#define COLCAST_SERVER_TRACING_OTLP_H_

#include <string>
#include <vector>

#include "server/tracing/span.h"

namespace colcast::tracing {

// A serialized ExportTraceServiceRequest. All texts must be UTF-8.
std::string WriteExportRequest(const std::string& service_name, const std::vector<Span>& spans);

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_OTLP_H_
