#include <cstdlib>
#include <optional>
#include <string>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(std::string, trace_endpoint, "",
          "where spans of requests go: http://HOST:4318/v1/traces of a collector that takes OTLP "
          "over HTTP. Empty: $OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces, or no tracing without it");
ABSL_FLAG(double, trace_sampling_ratio, 0,
          "the share of requests without a traceparent that is traced; those with one are as it "
          "says");

namespace colcast::flags {
namespace {

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string EndpointUrl() {
  std::string url = absl::GetFlag(FLAGS_trace_endpoint);
  if (!url.empty()) return url;
  url = Environment("OTEL_EXPORTER_OTLP_ENDPOINT");
  if (url.empty()) return url;
  return url + (url.back() == '/' ? "v1/traces" : "/v1/traces");
}

}  // namespace

Status ReadTracingFlags(std::optional<tracing::Tracer::Options>* options) {
  if (Status status = CheckRanges({{FLAGS_trace_sampling_ratio, 0, 1}}); !status.ok()) {
    return status;
  }
  const std::string url = EndpointUrl();
  const double ratio = absl::GetFlag(FLAGS_trace_sampling_ratio);
  if (url.empty()) {
    if (ratio == 0) return OkStatus();
    return InvalidArgument("--trace_sampling_ratio=", ratio, " needs --trace_endpoint");
  }
  tracing::Tracer::Options tracer;
  if (Status status = tracing::ParseEndpoint(url, &tracer.endpoint); !status.ok()) {
    return InvalidArgument("--trace_endpoint: ", status.message);
  }
  if (const std::string name = Environment("OTEL_SERVICE_NAME"); !name.empty()) {
    tracer.service_name = name;
  }
  tracer.sampling_ratio = ratio;
  *options = tracer;
  return OkStatus();
}

}  // namespace colcast::flags
