// Decides which requests are traced. After the answer, makes their spans from the call records that
// the metrics use.
#ifndef COLCAST_SERVER_TRACING_TRACER_H_
#define COLCAST_SERVER_TRACING_TRACER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/engine/engine.h"
#include "server/metrics/call_record.h"
#include "server/tracing/span_exporter.h"

namespace colcast::tracing {

// The trace context that a client sends with a request: https://www.w3.org/TR/trace-context/
struct TraceContext {
  std::string trace_id;   // 16 bytes
  std::string parent_id;  // 8 bytes: the client's span
  bool sampled = false;
};

// Returns nullopt unless `text` conforms to the specification. Ignores fields that later versions
// have added to version 00.
std::optional<TraceContext> ParseTraceparent(std::string_view text);

// A sampled request; collects the stages that it runs.
class RequestTrace final : public engine::RunObserver {
 public:
  void OnStage(const engine::StageRun& run) override { stages_.push_back(run); }

 private:
  friend class Tracer;
  RequestTrace(std::string trace_id, std::string parent_id)
      : trace_id_(std::move(trace_id)), parent_id_(std::move(parent_id)) {}

  const std::string trace_id_;
  const std::string parent_id_;  // empty if the trace begins here
  std::vector<engine::StageRun> stages_;
};

// All methods may be called from any thread.
class Tracer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Options {
    Endpoint endpoint;  // a collector that accepts OTLP over HTTP
    std::string service_name = "colcast_model_server";
    double sampling_ratio = 0;  // the sampled fraction of requests without a traceparent
  };

  explicit Tracer(const Options& options);
  // Passes spans to `send` instead of to the collector.
  Tracer(const Options& options, SpanExporter::Options queue, SpanExporter::Send send);

  // Returns null if the request is not sampled. The sampled flag in the client's `traceparent`
  // decides; if `traceparent` is empty or invalid, the sampling ratio decides.
  std::unique_ptr<RequestTrace> Start(std::string_view traceparent) const;

  // Exports the spans of an answered request.
  void Finish(const RequestTrace& trace, const metrics::CallRecord& record);

  const SpanExporter& exporter() const { return exporter_; }

 private:
  const double sampling_ratio_;
  SpanExporter exporter_;
};

}  // namespace colcast::tracing

#endif  // COLCAST_SERVER_TRACING_TRACER_H_
