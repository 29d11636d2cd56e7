#include "server/metrics/text_writer.h"

#include <charconv>
#include <cstdio>

#include "server/base/text.h"

namespace colcast::metrics {
namespace {

const char* TypeName(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

// Returns the shortest text that parses to the same number.
std::string Number(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

// Uses six digits, like TensorFlow Serving, so that queries that name a bound match both servers.
std::string Bound(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

void AppendEscaped(std::string_view value, std::string* text) {
  // A single byte of invalid UTF-8 would make Prometheus reject the whole page.
  const bool valid = IsValidUtf8(value);
  for (const char c : value) {
    if (c == '\n') {
      *text += "\\n";
    } else if (c == '\\' || c == '"') {
      *text += '\\';
      *text += c;
    } else {
      *text += valid || static_cast<unsigned char>(c) < 0x80 ? c : '?';
    }
  }
}

}  // namespace

void TextWriter::Metric(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text_.append("# TYPE ").append(name).append(" ").append(TypeName(type)).append("\n");
}

void TextWriter::Sample(const Labels& labels, int64_t value) {
  Line("", labels, std::to_string(value));
}

void TextWriter::Sample(const Labels& labels, double value) { Line("", labels, Number(value)); }

void TextWriter::Sample(const Labels& labels, const HistogramSnapshot& histogram) {
  const Buckets& buckets = *histogram.buckets;
  Labels with_bound = labels;
  with_bound.emplace_back("le", "");
  int64_t below = 0;
  for (size_t i = 0; i < buckets.bounds.size(); ++i) {
    below += histogram.counts[i];
    const std::string bound = Bound(buckets.published[i]);
    with_bound.back().second = bound;
    Line("_bucket", with_bound, std::to_string(below));
  }
  const std::string count = std::to_string(below + histogram.counts.back());
  with_bound.back().second = "+Inf";
  Line("_bucket", with_bound, count);
  Line("_sum", labels, Number(static_cast<double>(histogram.sum) / buckets.unit));
  Line("_count", labels, count);
}

void TextWriter::Line(std::string_view suffix, const Labels& labels, std::string_view value) {
  text_.append(name_).append(suffix);
  char before = '{';
  for (const auto& [name, text] : labels) {
    text_.append(1, before).append(name).append("=\"");
    AppendEscaped(text, &text_);
    text_.append("\"");
    before = ',';
  }
  if (!labels.empty()) text_.append("}");
  text_.append(" ").append(value).append("\n");
}

}  // namespace colcast::metrics
