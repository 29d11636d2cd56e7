#include "server/tracing/tracer.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "server/base/draw.h"
#include "server/base/text.h"

namespace colcast::tracing {

namespace {

// The size of "VV-TRACE_ID-PARENT_ID-FLAGS".
constexpr size_t kSize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

bool IsZero(const std::string& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  if (text.size() < kSize || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  TraceContext context;
  std::string version;
  std::string flags;
  if (!ReadHex(text.substr(0, 2), &version) || !ReadHex(text.substr(3, 32), &context.trace_id) ||
      !ReadHex(text.substr(36, 16), &context.parent_id) || !ReadHex(text.substr(53, 2), &flags)) {
    return std::nullopt;
  }
  const bool has_more = text.size() > kSize;
  if (version == "\xff" || IsZero(context.trace_id) || IsZero(context.parent_id) ||
      (has_more && (IsZero(version) || text[kSize] != '-'))) {
    return std::nullopt;
  }
  context.sampled = (flags[0] & 1) != 0;
  return context;
}

namespace {

using Time = Tracer::Time;
using std::chrono::nanoseconds;

constexpr std::chrono::seconds kPostTimeout(3);

uint64_t Random() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

std::string NewId(size_t bytes) {
  std::string id(bytes, '\0');
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t drawn = std::max<uint64_t>(Random(), 1);  // an id must not be all zeros
    std::memcpy(id.data() + at, &drawn, sizeof(drawn));
  }
  return id;
}

// Collects the spans of one request. Converts the steady clock's times to times since 1970.
class Spans {
 public:
  explicit Spans(std::string trace_id)
      : trace_id_(std::move(trace_id)),
        since_1970_(std::chrono::system_clock::now().time_since_epoch() -
                    std::chrono::steady_clock::now().time_since_epoch()) {}

  // `parent` is the parent span's id; empty for none.
  Span* Add(std::string name, const std::string& parent, Time start, Time end) {
    Span& span = spans_.emplace_back();
    span.trace_id = trace_id_;
    span.id = NewId(8);
    span.parent_id = parent;
    span.name = std::move(name);
    span.start = Since1970(start);
    span.end = Since1970(std::max(start, end));
    return &span;
  }

  std::vector<Span> Take() { return std::move(spans_); }

 private:
  int64_t Since1970(Time time) const {
    return nanoseconds(time.time_since_epoch() + since_1970_).count();
  }

  const std::string trace_id_;
  const nanoseconds since_1970_;
  std::vector<Span> spans_;
};

void Describe(const metrics::CallRecord& record, Span* span) {
  const std::string api(record.api);
  span->kind = SpanKind::kServer;
  span->failed = record.code != StatusCode::kOk;
  auto& attributes = span->attributes;
  if (record.entrypoint == "GRPC") {
    span->name = "tensorflow.serving.PredictionService/" + api;
    attributes = {{"rpc.system", "grpc"},
                  {"rpc.service", "tensorflow.serving.PredictionService"},
                  {"rpc.method", api},
                  {"rpc.grpc.status_code", static_cast<int64_t>(record.code)}};
  } else {
    span->name = "POST " + api;
    attributes = {{"http.request.method", "POST"}, {"colcast.api", api}};
  }
  attributes.emplace_back("colcast.status", std::string(StatusName(record.code)));
  attributes.emplace_back("colcast.request_bytes", static_cast<int64_t>(record.request_bytes));
  attributes.emplace_back("colcast.response_bytes", static_cast<int64_t>(record.response_bytes));
  if (record.model_name.empty()) return;
  attributes.emplace_back("colcast.model", std::string(record.model_name));
  attributes.emplace_back("colcast.version", record.model_version);
  attributes.emplace_back("colcast.signature", std::string(record.signature_name));
  attributes.emplace_back("colcast.rows", record.expansion.rows);
}

}  // namespace

Tracer::Tracer(const Options& options)
    : Tracer(options, {}, [options](const std::vector<Span>& spans) {
        return PostProtobuf(options.endpoint, WriteExportRequest(options.service_name, spans),
                            kPostTimeout);
      }) {}

Tracer::Tracer(const Options& options, SpanExporter::Options queue, SpanExporter::Send send)
    : sampling_ratio_(options.sampling_ratio), exporter_(queue, std::move(send)) {}

std::unique_ptr<RequestTrace> Tracer::Start(std::string_view traceparent) const {
  if (!traceparent.empty()) {
    if (std::optional<TraceContext> parent = ParseTraceparent(traceparent)) {
      if (!parent->sampled) return nullptr;
      return std::unique_ptr<RequestTrace>(
          new RequestTrace(std::move(parent->trace_id), std::move(parent->parent_id)));
    }
  }
  if (!Draw(sampling_ratio_)) return nullptr;
  return std::unique_ptr<RequestTrace>(new RequestTrace(NewId(16), ""));
}

void Tracer::Finish(const RequestTrace& trace, const metrics::CallRecord& record) {
  const Time received = record.received;
  const Time answered = received + record.latency;
  Spans spans(trace.trace_id_);
  Span* const request = spans.Add("", trace.parent_id_, received, answered);
  Describe(record, request);
  const std::string request_id = request->id;
  const bool ran = record.run_start != Time();
  const Time taken = std::min(received + record.queue_wait, ran ? record.run_start : answered);
  spans.Add("queued", request_id, received, taken);
  if (ran) {
    const Time ended = std::min(record.run_start + record.runtime, answered);
    spans.Add("planned", request_id, taken, record.run_start);
    Span* const run = spans.Add("run", request_id, record.run_start, ended);
    run->attributes = {{"colcast.requests_in_run", int64_t{record.requests_in_run}},
                       {"colcast.slices", int64_t{record.slices}}};
    const std::string run_id = run->id;
    for (const engine::StageRun& stage : trace.stages_) {
      Span* const span =
          spans.Add("stage " + std::string(stage.stage), run_id, stage.start, stage.end);
      span->attributes = {{"colcast.rows", stage.rows}};
      if (stage.hits < 0) continue;
      span->attributes.emplace_back("colcast.hits", stage.hits);
      span->attributes.emplace_back("colcast.misses", stage.rows - stage.hits);
    }
    spans.Add("sent", request_id, ended, answered);
  }
  exporter_.Add(spans.Take());
}

}  // namespace colcast::tracing
