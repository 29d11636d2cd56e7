// Prometheus' text exposition format, version 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats). Written from scratch, because using
// prometheus-cpp's serializer would take more code: it needs all counts copied into its own types.
#ifndef COLCAST_SERVER_METRICS_TEXT_WRITER_H_
#define COLCAST_SERVER_METRICS_TEXT_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/metrics/histogram.h"

namespace colcast::metrics {

inline constexpr char kTextContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// Names and values. A value may be any text; a name must be valid in Prometheus.
using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

enum class MetricType { kCounter, kGauge, kHistogram };

class TextWriter {
 public:
  // Begins a metric. The samples that follow belong to it. `help` is one line.
  void Metric(std::string_view name, MetricType type, std::string_view help);

  void Sample(const Labels& labels, int64_t value);
  void Sample(const Labels& labels, double value);
  // Writes the cumulative buckets, the sum and the count, in the published unit.
  void Sample(const Labels& labels, const HistogramSnapshot& histogram);

  const std::string& text() const { return text_; }

 private:
  void Line(std::string_view suffix, const Labels& labels, std::string_view value);

  std::string name_;
  std::string text_;
};

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_TEXT_WRITER_H_
