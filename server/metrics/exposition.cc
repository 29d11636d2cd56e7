#include "server/metrics/exposition.h"

#include <cctype>
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
constexpr MetricType kHistogram = MetricType::kHistogram;

constexpr size_t kLatency = CallMetricIndex(":colcast:request_latency_microseconds");
constexpr size_t kRunLatency = CallMetricIndex(":colcast:runtime_microseconds");

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

using OwnLabels = std::vector<std::pair<std::string_view, std::string>>;

// Writes the call metric at `index` under another name, summed over the series with equal labels.
void WriteSums(const Series& requests, size_t index, const char* name, const char* help,
               OwnLabels (*labels_of)(const RequestLabels&), TextWriter* writer) {
  std::map<OwnLabels, HistogramSnapshot> sums;
  for (const RequestSeries& series : requests) {
    const HistogramSnapshot& histogram = series.histograms[index];
    if (histogram.Count() > 0) sums[labels_of(series.labels)].Add(histogram);
  }
  writer->Metric(name, kHistogram, help);
  for (const auto& [labels, sum] : sums) writer->Sample({labels.begin(), labels.end()}, sum);
}

void WriteHistograms(const Series& requests, TextWriter* writer) {
  WriteSums(
      requests, kLatency, ":tensorflow:serving:request_latency",
      "Microseconds from the receipt of a request to its answer.",
      [](const RequestLabels& labels) -> OwnLabels {
        return {{"model_name", labels.model_name},
                {"API", ApiAsServed(labels)},
                {"entrypoint", labels.entrypoint}};
      },
      writer);
  WriteSums(
      requests, kRunLatency, ":tensorflow:serving:runtime_latency",
      "Microseconds a request took in the model.",
      [](const RequestLabels& labels) -> OwnLabels {
        // "TF1" is a session, as opposed to TFRT and TFLite.
        return {{"model_name", labels.model_name}, {"API", labels.api}, {"runtime", "TF1"}};
      },
      writer);
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
  WriteHistograms(requests, writer);
  WriteStatuses(requests, writer);
  WriteCallMetrics(requests, writer);
}

}  // namespace colcast::metrics
