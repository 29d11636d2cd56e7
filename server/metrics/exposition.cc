#include "server/metrics/exposition.h"

#include <cctype>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "server/base/status.h"

namespace colcast::metrics {
namespace {

using Series = std::vector<RequestSeries>;
constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;
constexpr MetricType kHistogram = MetricType::kHistogram;

// TensorFlow Serving's name for sessions, as opposed to TFRT and TFLite.
constexpr char kRuntime[] = "TF1";

// TensorFlow Serving spells the API as the URL does where the request came over REST.
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
    if (series.latency.Count() == 0) continue;
    sums[{labels.model_name, ApiAsServed(labels), labels.entrypoint}].Add(series.latency);
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
    if (series.runtime.Count() == 0) continue;
    sums[{series.labels.model_name, series.labels.api}].Add(series.runtime);
  }
  writer->Metric(":tensorflow:serving:runtime_latency", kHistogram,
                 "Microseconds a request took in the model.");
  for (const auto& [key, sum] : sums) {
    const auto& [model, api] = key;
    writer->Sample({{"model_name", model}, {"API", api}, {"runtime", kRuntime}}, sum);
  }
}

// Of the APIs whose rows are tf.Examples.
void WriteExampleCounts(const Series& requests, TextWriter* writer) {
  std::map<std::string_view, HistogramSnapshot> sums;
  for (const RequestSeries& series : requests) {
    const std::string_view api = series.labels.api;
    if (api == "Predict" || api == "ModelInfer" || series.rows.Count() == 0) continue;
    sums[series.labels.model_name].Add(series.rows);
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

void WriteHistograms(const Series& requests, TextWriter* writer) {
  const struct {
    const char* name;
    const char* help;
    HistogramSnapshot RequestSeries::*histogram;
  } kMetrics[] = {
      {":colcast:request_latency_microseconds", "From the receipt of a request to its answer.",
       &RequestSeries::latency},
      {":colcast:queue_wait_microseconds", "From the receipt of a request until a worker took it.",
       &RequestSeries::queue_wait},
      {":colcast:runtime_microseconds", "In the model, with making the tensors.",
       &RequestSeries::runtime},
      {":colcast:request_bytes", "Size of a request's message.", &RequestSeries::request_bytes},
      {":colcast:response_bytes", "Size of a response's message.", &RequestSeries::response_bytes},
      {":colcast:rows", "Candidates of a request.", &RequestSeries::rows},
      {":colcast:run_requests", "Requests that one run of the model answered.",
       &RequestSeries::run_requests},
      {":colcast:run_rows", "Candidates of one run of the model.", &RequestSeries::run_rows},
  };
  for (const auto& metric : kMetrics) {
    writer->Metric(metric.name, kHistogram, metric.help);
    for (const RequestSeries& series : requests) {
      const HistogramSnapshot& histogram = series.*metric.histogram;
      if (histogram.Count() > 0) writer->Sample(LabelsOf(series), histogram);
    }
  }
}

void WriteSavings(const Series& requests, TextWriter* writer) {
  const struct {
    const char* name;
    const char* help;
    int64_t RequestSeries::*counter;
  } kMetrics[] = {
      {":colcast:columns_sent_once_total", "Columns that came as one row beside more rows.",
       &RequestSeries::columns_sent_once},
      {":colcast:bytes_saved_total", "What repeating these columns would have added to requests.",
       &RequestSeries::bytes_saved},
      {":colcast:transcoded_requests_total", "Requests whose tf.Examples were read as columns.",
       &RequestSeries::transcoded_requests},
      {":colcast:transcoded_rows_total", "tf.Examples that were read as columns.",
       &RequestSeries::transcoded_rows},
      {":colcast:transcoded_repeated_bytes_total",
       "Bytes of these that repeated features which all Examples of a request had in common.",
       &RequestSeries::repeated_bytes},
      {":colcast:joined_requests_total", "Requests that ran together with others.",
       &RequestSeries::joined_requests},
      {":colcast:divided_requests_total", "Requests that ran in slices.",
       &RequestSeries::split_requests},
      {":colcast:pieces_total", "Slices that they ran in.", &RequestSeries::slices},
  };
  for (const auto& metric : kMetrics) {
    writer->Metric(metric.name, kCounter, metric.help);
    for (const RequestSeries& series : requests) {
      if (series.latency.Count() > 0) writer->Sample(LabelsOf(series), series.*metric.counter);
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
  WriteHistograms(requests, writer);
  WriteSavings(requests, writer);
}

void WriteLoads(const std::vector<LoadSeries>& loads, TextWriter* writer) {
  writer->Metric(":tensorflow:cc:saved_model:load_attempt_count", kCounter,
                 "Times a version was loaded, or could not be.");
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
                 "Microseconds that loading a version took, of the times it could be.");
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

void WriteOffloads(const Metrics& metrics, TextWriter* writer) {
  writer->Metric(":colcast:offloaded_requests_total", kCounter,
                 "Requests sent on to --offload_target; those that failed ran here.");
  writer->Sample({{"status", "answered"}}, metrics.Offloads(true));
  writer->Sample({{"status", "failed"}}, metrics.Offloads(false));
}

void WriteLaneWaits(const Metrics& metrics, TextWriter* writer) {
  writer->Metric(":colcast:lane_wait_microseconds", kHistogram,
                 "Until a worker took a request, or a slice of a split one.");
  for (const bool long_lane : {false, true}) {
    writer->Sample({{"lane", long_lane ? "long" : "short"}}, metrics.LaneWait(long_lane));
  }
}

void WriteProcess(const ProcessUsage& usage, TextWriter* writer) {
  writer->Metric("process_cpu_seconds_total", kCounter, "User and system time of all threads.");
  writer->Sample({}, usage.cpu_seconds);
  writer->Metric("process_resident_memory_bytes", kGauge, "Resident memory.");
  writer->Sample({}, usage.resident_bytes);
  writer->Metric("process_open_fds", kGauge, "Open file descriptors.");
  writer->Sample({}, usage.open_fds);
  writer->Metric("process_max_fds", kGauge, "File descriptors that may be open.");
  writer->Sample({}, usage.max_fds);
  writer->Metric("process_start_time_seconds", kGauge, "When the process started, since 1970.");
  writer->Sample({}, usage.start_time_seconds);
}

}  // namespace colcast::metrics
