#include "server/pages/pages.h"

#include <absl/strings/escaping.h>
#include <openssl/sha.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "server/metrics/exposition.h"
#include "server/pages/embedded_files.h"
#include "server/pages/sections.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace colcast::pages {

namespace {

using metrics::MetricType;
using metrics::TextWriter;

void WriteQueue(const scheduling::WorkerPool& workers, TextWriter* writer) {
  writer->Metric(":colcast:queue_length", MetricType::kGauge, "Requests that wait for a worker.");
  writer->Sample({}, int64_t{workers.queued()});
  writer->Metric(":colcast:dropped_requests_total", MetricType::kCounter,
                 "Requests answered with an error before they ran.");
  for (int i = 0; i < scheduling::kNumDropReasons; ++i) {
    const auto reason = static_cast<scheduling::DropReason>(i);
    writer->Sample({{"reason", scheduling::DropReasonName(reason)}}, workers.dropped(reason));
  }
}

void WriteVersions(const std::vector<models::ModelSnapshot>& models, TextWriter* writer) {
  writer->Metric(":colcast:model_version_state", MetricType::kGauge,
                 "1 for the state that a version is in.");
  for (const models::ModelSnapshot& model : models) {
    for (const models::VersionSnapshot& version : model.versions) {
      const std::string number = std::to_string(version.status.version);
      using tensorflow::serving::ModelVersionStatus;
      const std::string& state = ModelVersionStatus::State_Name(
          static_cast<ModelVersionStatus::State>(version.status.state));
      writer->Sample({{"model_name", model.name}, {"version", number}, {"state", state}},
                     int64_t{1});
    }
  }
}

void WriteBasePaths(const std::vector<models::ModelSnapshot>& models, TextWriter* writer) {
  writer->Metric(":colcast:base_path_read_seconds", MetricType::kGauge,
                 "When the model's base path was last read, in seconds since 1970.");
  for (const models::ModelSnapshot& model : models) {
    writer->Sample({{"model_name", model.name}}, model.base_path_read);
  }
}

// TensorFlow Serving's counter. The status code tells whether a record was written or dropped.
void WriteRequestLogs(const request_log::RequestLogs& logs, TextWriter* writer) {
  writer->Metric(":tensorflow:serving:request_log_count", MetricType::kCounter,
                 "Requests that were drawn to be logged.");
  for (const request_log::LogCounts& counts : logs.Counts()) {
    for (int code = 0; code < kNumStatusCodes; ++code) {
      if (counts.records[code] == 0) continue;
      writer->Sample({{"model_name", counts.model_name},
                      {"status_code", StatusName(static_cast<StatusCode>(code))}},
                     counts.records[code]);
    }
  }
}

void WriteSpans(const tracing::Tracer* tracer, TextWriter* writer) {
  writer->Metric(":colcast:trace_spans_total", MetricType::kCounter,
                 "Spans of requests: sent to the collector, or dropped.");
  if (tracer == nullptr) return;
  writer->Sample({{"status", "sent"}}, tracer->exporter().sent());
  writer->Sample({{"status", "dropped"}}, tracer->exporter().dropped());
}

using http::Response;

// All metrics, as described in docs/metrics.md.
Response MetricsPage(const Backend& backend, const std::string& server_version) {
  TextWriter writer;
  WriteRequests(backend.metrics->Requests(), &writer);
  WriteQueue(*backend.workers, &writer);
  WriteRequestLogs(*backend.request_logs, &writer);
  const std::vector<models::ModelSnapshot> models = backend.models->Models();
  WriteVersions(models, &writer);
  WriteBasePaths(models, &writer);
  WriteStates(models, &writer);
  WritePrograms(models, &writer);
  WriteTables(models, &writer);
  WriteItemTables(*backend.item_tables, &writer);
  WriteLoads(backend.metrics->Loads(), &writer);
  WriteOffloads(*backend.metrics, &writer);
  WriteLaneWaits(*backend.metrics, &writer);
  WriteSpans(backend.tracer, &writer);
  writer.Metric(":colcast:build_info", MetricType::kGauge,
                "Always 1, labelled with the server's version.");
  writer.Sample({{"version", server_version}}, int64_t{1});
  WriteProcess(metrics::ReadProcessUsage(), &writer);
  Response response;
  response.content_type = metrics::kTextContentType;
  response.body = writer.text();
  return response;
}

Response Uncached(std::string content_type, std::string body) {
  Response response;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  response.headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  return response;
}

// The 'sha256-...' of the page's only `element`, for a content security policy.
std::string HashOf(std::string_view html, const std::string& element) {
  const std::string begin = "<" + element + ">", end = "</" + element + ">";
  const size_t at = html.find(begin) + begin.size();
  const std::string_view text = html.substr(at, html.find(end) - at);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return "'sha256-" + absl::Base64Escape({reinterpret_cast<char*>(digest), sizeof(digest)}) + "'";
}

// Names come from models and clients. Even if one were parsed as markup, the policy allows only the
// page's own script to run.
Response Page() {
  Response page = Uncached("text/html; charset=utf-8", kStatusHtml);
  page.headers.emplace_back("Content-Security-Policy",
                            "default-src 'none'; style-src " + HashOf(kStatusHtml, "style") +
                                "; script-src " + HashOf(kStatusHtml, "script") +
                                "; connect-src 'self'; img-src data:; base-uri 'none'; "
                                "form-action 'none'; frame-ancestors 'self'");
  return page;
}

std::string StatusJson(const Backend& backend, const std::string& server_version,
                       const metrics::Recent& recent) {
  const std::vector<models::ModelSnapshot> models = backend.models->Models();
  JsonWriter json;
  json.Object([&] {
    WriteTraffic(backend, server_version, recent, &json);
    WriteModels(models, &json);
    WriteStates(models, &json);
    WriteItemTables(*backend.item_tables, &json);
  });
  return json.text();
}

}  // namespace

void AddPages(const Backend& backend, const std::string& server_version,
              const std::string& metrics_path, http::Router* router) {
  router->AddPage("/", [page = Page()] { return page; });
  const auto sampler = std::make_shared<const metrics::Sampler>(backend.metrics);
  router->AddPage("/status.json", [backend, server_version, sampler] {
    return Uncached("application/json", StatusJson(backend, server_version, sampler->recent()));
  });
  if (metrics_path.empty()) return;
  router->AddPage(metrics_path,
                  [backend, server_version] { return MetricsPage(backend, server_version); });
}

}  // namespace colcast::pages
