#include "server/metrics/exposition.h"

#include <cctype>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "server/base/figures.h"
#include "server/base/status.h"

namespace colcast::metrics {
namespace {

using Series = std::vector<RequestSeries>;
constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;
constexpr MetricType kHistogram = MetricType::kHistogram;

constexpr size_t kLatency = CallMetricIndex(":colcast:request_latency_microseconds");
constexpr size_t kRunLatency = CallMetricIndex(":colcast:runtime_microseconds");
constexpr size_t kRows = CallMetricIndex(":colcast:rows");

// The label with which TensorFlow Serving distinguishes sessions from TFRT and TFLite.
constexpr char kRuntime[] = "TF1";

// Like TensorFlow Serving, writes the API of a REST request in lower case, as in its URL.
std::string ApiAsServed(const RequestLabels& labels) {
  std::string api = labels.api;
  if (labels.entrypoint != "REST") return api;
  for (char& c : api) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return api;
}

Labels LabelsOf(const RequestSeries& series) {
  return {{"model_name", series.labels.model_name},
          {"signature_name", series.labels.signature_name},
          {"API", series.labels.api},
          {"entrypoint", series.labels.entrypoint}};
}

void WriteRequestCount(const Series& requests, TextWriter* writer) {
  std::map<std::tuple<std::string_view, int>, int64_t> sums;
  for (const RequestSeries& series : requests) {
    for (int code = 0; code < kNumStatusCodes; ++code) {
      if (series.answered[code] == 0) continue;
      sums[{series.labels.model_name, code}] += series.answered[code];
    }
  }
  writer->Metric(":tensorflow:serving:request_count", kCounter, "Requests answered.");
  for (const auto& [key, sum] : sums) {
    const auto& [model, code] = key;
    writer->Sample({{"model_name", model}, {"status", StatusName(static_cast<StatusCode>(code))}},
                   sum);
  }
}

void WriteRequestLatency(const Series& requests, TextWriter* writer) {
  using Key = std::tuple<std::string_view, std::string, std::string_view>;
  std::map<Key, HistogramSnapshot> sums;
  for (const RequestSeries& series : requests) {
    const RequestLabels& labels = series.labels;
    if (series.histograms[kLatency].Count() == 0) continue;
    sums[{labels.model_name, ApiAsServed(labels), labels.entrypoint}].Add(
        series.histograms[kLatency]);
  }
  writer->Metric(":tensorflow:serving:request_latency", kHistogram,
                 "Microseconds from the receipt of a request to its answer.");
  for (const auto& [key, sum] : sums) {
    const auto& [model, api, entrypoint] = key;
    writer->Sample({{"model_name", model}, {"API", api}, {"entrypoint", entrypoint}}, sum);
  }
}

void WriteRuntimeLatency(const Series& requests, TextWriter* writer) {
  std::map<std::tuple<std::string_view, std::string_view>, HistogramSnapshot> sums;
  for (const RequestSeries& series : requests) {
    if (series.histograms[kRunLatency].Count() == 0) continue;
    sums[{series.labels.model_name, series.labels.api}].Add(series.histograms[kRunLatency]);
  }
  writer->Metric(":tensorflow:serving:runtime_latency", kHistogram,
                 "Microseconds a request took in the model.");
  for (const auto& [key, sum] : sums) {
    const auto& [model, api] = key;
    writer->Sample({{"model_name", model}, {"API", api}, {"runtime", kRuntime}}, sum);
  }
}

// Writes the counts of APIs whose rows are tf.Examples.
void WriteExampleCounts(const Series& requests, TextWriter* writer) {
  std::map<std::string_view, HistogramSnapshot> sums;
  for (const RequestSeries& series : requests) {
    const std::string_view api = series.labels.api;
    if (api == "Predict" || api == "ModelInfer" || series.histograms[kRows].Count() == 0) continue;
    sums[series.labels.model_name].Add(series.histograms[kRows]);
  }
  writer->Metric(":tensorflow:serving:request_example_counts", kHistogram,
                 "tf.Examples of a request to classify or regress.");
  for (const auto& [model, sum] : sums) writer->Sample({{"model", model}}, sum);
  writer->Metric(":tensorflow:serving:request_example_count_total", kCounter,
                 "tf.Examples of all requests to classify or regress.");
  for (const auto& [model, sum] : sums) writer->Sample({{"model", model}}, sum.sum);
}

void WriteStatuses(const Series& requests, TextWriter* writer) {
  writer->Metric(":colcast:requests_total", kCounter, "Requests answered.");
  for (const RequestSeries& series : requests) {
    Labels labels = LabelsOf(series);
    labels.emplace_back("status", "");
    for (int code = 0; code < kNumStatusCodes; ++code) {
      if (series.answered[code] == 0) continue;
      labels.back().second = StatusName(static_cast<StatusCode>(code));
      writer->Sample(labels, series.answered[code]);
    }
  }
}

void WriteCallMetrics(const Series& requests, TextWriter* writer) {
  for (size_t i = 0; i < kNumCallMetrics; ++i) {
    const CallMetric& metric = kCallMetrics[i];
    const bool counts = metric.buckets == nullptr;
    writer->Metric(metric.name, counts ? kCounter : kHistogram, metric.help);
    for (const RequestSeries& series : requests) {
      if (!counts && series.histograms[i].Count() > 0) {
        writer->Sample(LabelsOf(series), series.histograms[i]);
      } else if (counts && series.histograms[kLatency].Count() > 0) {
        writer->Sample(LabelsOf(series), series.counts[i]);
      }
    }
  }
}

}  // namespace

void WriteRequests(const Series& requests, TextWriter* writer) {
  WriteRequestCount(requests, writer);
  WriteRequestLatency(requests, writer);
  WriteRuntimeLatency(requests, writer);
  WriteExampleCounts(requests, writer);
  WriteStatuses(requests, writer);
  WriteCallMetrics(requests, writer);
}

void WriteLoads(const std::vector<LoadSeries>& loads, TextWriter* writer) {
  writer->Metric(":tensorflow:cc:saved_model:load_attempt_count", kCounter,
                 "Attempts to load a version, by their result.");
  for (const LoadSeries& series : loads) {
    const std::string_view path = series.model_path;
    if (series.succeeded > 0) {
      writer->Sample({{"model_path", path}, {"status", "success"}}, series.succeeded);
    }
    if (series.failed > 0) {
      writer->Sample({{"model_path", path}, {"status", "fail"}}, series.failed);
    }
  }
  writer->Metric(":tensorflow:cc:saved_model:load_latency", kCounter,
                 "Microseconds that successful loads of a version took.");
  for (const LoadSeries& series : loads) {
    if (series.succeeded == 0) continue;
    using std::chrono::microseconds;
    writer->Sample({{"model_path", series.model_path}},
                   int64_t{std::chrono::duration_cast<microseconds>(series.latency).count()});
  }
  writer->Metric(":tensorflow:serving:model_warmup_latency", kHistogram,
                 "Microseconds that warming up a version took.");
  for (const LoadSeries& series : loads) {
    for (const auto& [status, latency] : series.warmup) {
      writer->Sample({{"model_path", series.model_path}, {"status", status}}, latency);
    }
  }
}

void WriteLaneWaits(const Metrics& metrics, TextWriter* writer) {
  writer->Metric(":colcast:lane_wait_microseconds", kHistogram,
                 "Time until a worker took a request, or a slice of a split one.");
  for (const bool long_lane : {false, true}) {
    writer->Sample({{"lane", long_lane ? "long" : "short"}}, metrics.LaneWait(long_lane));
  }
}

void WriteProcess(const ProcessUsage& usage, TextWriter* writer) {
  writer->Metric(":colcast:lost_log_lines_total", kCounter,
                 "Log lines lost because their reader stopped reading or is gone.");
  writer->Sample({}, figures.lost_log_lines.load());
  writer->Metric(":colcast:connections_closed_for_room_total", kCounter,
                 "Idle connections closed because connections or descriptors ran short.");
  writer->Sample({}, figures.closed_for_room.load());
  writer->Metric(":colcast:refused_certificates_total", kCounter,
                 "Renewed certificates that were invalid, so that the old ones stayed in use.");
  writer->Sample({}, figures.refused_certificates.load());
  writer->Metric(":colcast:certificates_end_seconds", kGauge,
                 "When the certificates in use expire, in seconds since 1970; 0 without TLS.");
  writer->Sample({}, figures.certificates_end.load());
  writer->Metric(":colcast:anonymous_memory_bytes", kGauge,
                 "Resident memory without mapped files, which the kernel can drop.");
  writer->Sample({}, usage.anonymous_bytes);
  writer->Metric(":colcast:memory_limit_bytes", kGauge,
                 "Memory of the machine or, if less, the limit of the control groups.");
  writer->Sample({}, usage.memory_limit);
  writer->Metric("process_cpu_seconds_total", kCounter, "User and system time of all threads.");
  writer->Sample({}, usage.cpu_seconds);
  writer->Metric("process_resident_memory_bytes", kGauge, "Resident memory.");
  writer->Sample({}, usage.resident_bytes);
  writer->Metric("process_open_fds", kGauge, "Open file descriptors.");
  writer->Sample({}, usage.open_fds);
  writer->Metric("process_max_fds", kGauge, "File descriptors that may be open.");
  writer->Sample({}, usage.max_fds);
  writer->Metric("process_start_time_seconds", kGauge,
                 "When the process started, in seconds since 1970.");
  writer->Sample({}, usage.start_time_seconds);
}

}  // namespace colcast::metrics
