#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include "server/http/pages/html_writer.h"
#include "server/http/pages/sections.h"
#include "server/metrics/process_usage.h"

namespace colcast::http {
namespace {

using metrics::Recent;
using metrics::RecentSeries;
using metrics::RequestSeries;

constexpr std::chrono::seconds kShort{10};
constexpr std::chrono::seconds kLong{60};
constexpr char kNothing[] = "–";

// All series of an interval as one.
RecentSeries Total(const Recent::Interval& interval) {
  RecentSeries total;
  for (const RecentSeries& series : interval.requests) {
    total.answered += series.answered;
    total.failed += series.failed;
    total.rows += series.rows;
    total.bytes_saved += series.bytes_saved;
    total.latency.Add(series.latency);
  }
  return total;
}

double Rate(int64_t count, const Recent::Interval& interval) {
  return interval.seconds > 0 ? static_cast<double>(count) / interval.seconds : 0;
}

std::string QuantileText(const metrics::HistogramSnapshot& latency, double share) {
  return latency.Count() > 0 ? LatencyText(latency.Quantile(share)) : kNothing;
}

// Requests a second of the last minute, the newest at the right.
void WriteSparkline(const std::vector<double>& rates, HtmlWriter* html) {
  constexpr int kSeconds = 60;
  const double highest =
      rates.empty() ? 1 : std::max(1.0, *std::max_element(rates.begin(), rates.end()));
  std::string points;
  for (size_t i = 0; i < rates.size(); ++i) {
    const double x = kSeconds - static_cast<double>(rates.size()) + static_cast<double>(i) + 1;
    points += std::to_string(x) + ',' + std::to_string(20 - 19 * rates[i] / highest) + ' ';
  }
  html->Markup("<svg class=\"sparkline\" viewBox=\"0 0 60 20\" preserveAspectRatio=\"none\" ");
  html->Markup("role=\"img\" aria-label=\"requests per second in the last minute\">");
  html->Markup("<polyline points=\"").Text(points).Markup("\"/></svg>");
}

void WriteTile(std::string_view title, std::string_view value, std::string_view note,
               HtmlWriter* html) {
  html->Markup("<div class=\"tile\"><h3>").Text(title).Markup("</h3><p class=\"value\">");
  html->Text(value).Markup("</p><p class=\"faint\">").Text(note).Markup("</p></div>\n");
}

std::string DropsText(const scheduling::WorkerPool& workers) {
  std::string text;
  for (int i = 0; i < scheduling::kNumDropReasons; ++i) {
    const auto reason = static_cast<scheduling::DropReason>(i);
    if (workers.dropped(reason) == 0) continue;
    if (!text.empty()) text += ", ";
    std::string name = scheduling::DropReasonName(reason);
    std::replace(name.begin(), name.end(), '_', ' ');
    text += CountText(static_cast<double>(workers.dropped(reason))) + ' ' + name;
  }
  return text.empty() ? "none dropped" : "dropped: " + text;
}

// How many requests a run answers on average, and how many ran together and in slices.
void WriteRunsTile(const metrics::Metrics& metrics, HtmlWriter* html) {
  double runs = 0, answered = 0, joined = 0, divided = 0;
  for (const RequestSeries& series : metrics.Requests()) {
    runs += static_cast<double>(series.run_requests.Count());
    answered += static_cast<double>(series.run_requests.sum);
    joined += static_cast<double>(series.joined_requests);
    divided += static_cast<double>(series.divided_requests);
  }
  WriteTile("requests per run", runs > 0 ? CountText(answered / runs) : kNothing,
            CountText(joined) + " joined, " + CountText(divided) + " in slices, since the start",
            html);
}

// How long short requests waited for a worker, and long ones or their slices.
void WriteLanesTile(const metrics::Metrics& metrics, HtmlWriter* html) {
  WriteTile("wait for a worker, p99", QuantileText(metrics.LaneWait(/*long_lane=*/false), 0.99),
            "long requests " + QuantileText(metrics.LaneWait(/*long_lane=*/true), 0.99) +
                ", since the start",
            html);
}

int64_t AllBytesSaved(const metrics::Metrics& metrics) {
  int64_t saved = 0;
  for (const RequestSeries& series : metrics.Requests()) saved += series.bytes_saved;
  return saved;
}

// The entry of `series` in an interval; nothing counted if the interval ended before it began.
RecentSeries Find(const Recent::Interval& interval, const RequestSeries& series) {
  for (const RecentSeries& recent : interval.requests) {
    if (recent.labels == series.labels) return recent;
  }
  return {};
}

void WriteTrafficRow(const RequestSeries& series, const Recent::Interval& short_time,
                     const Recent::Interval& long_time, HtmlWriter* html) {
  const RecentSeries minute = Find(long_time, series);
  const metrics::RequestLabels& labels = series.labels;
  const bool no_model = labels.model_name.empty();
  html->Markup("<tr>").Cell(no_model ? "none: dropped or not found" : labels.model_name);
  html->Cell(labels.signature_name);
  html->Cell(labels.api + (labels.entrypoint == "REST" ? ", REST" : ""));
  html->NumberCell(CountText(Rate(Find(short_time, series).answered, short_time)));
  html->NumberCell(CountText(Rate(minute.answered, long_time)));
  for (const double share : {0.5, 0.95, 0.99}) {
    html->NumberCell(QuantileText(minute.latency, share));
  }
  const auto counted = static_cast<double>(series.rows.Count());
  const auto rows = static_cast<double>(series.rows.sum);
  html->NumberCell(counted > 0 ? CountText(rows / counted) : kNothing);
  html->NumberCell(BytesText(Rate(minute.bytes_saved, long_time)) + "/s");
  html->NumberCell(CountText(static_cast<double>(series.Answered())));
  html->NumberCell(CountText(static_cast<double>(series.Failed())));
  html->Markup("</tr>\n");
}

}  // namespace

std::string ServerLine(std::string_view server_version) {
  HtmlWriter html;
  html.Text("colcast_model_server ").Text(server_version).Text(", up ");
  const double up =
      static_cast<double>(std::time(nullptr)) - metrics::ReadProcessUsage().start_time_seconds;
  html.Text(DurationText(std::max(0.0, up)));
  return html.html();
}

std::string TilesSection(const Backend& backend, const Recent& recent) {
  const Recent::Interval short_time = recent.Last(kShort);
  const Recent::Interval long_time = recent.Last(kLong);
  const RecentSeries ten = Total(short_time);
  const RecentSeries sixty = Total(long_time);
  const metrics::ProcessUsage usage = metrics::ReadProcessUsage();
  HtmlWriter html;
  html.Markup("<div class=\"tile\"><h3>requests per second</h3><p class=\"value\">");
  html.Text(CountText(Rate(ten.answered, short_time))).Markup("</p>");
  WriteSparkline(recent.Rates(), &html);
  html.Markup("</div>\n");
  WriteTile("latency, p99", QuantileText(sixty.latency, 0.99),
            "p50 " + QuantileText(sixty.latency, 0.5) + ", last minute", &html);
  WriteTile("rows per second", CountText(Rate(ten.rows, short_time)), "candidates scored", &html);
  WriteTile("saved by sending once", BytesText(Rate(sixty.bytes_saved, long_time)) + "/s",
            BytesText(static_cast<double>(AllBytesSaved(*backend.metrics))) + " since the start",
            &html);
  WriteTile("errors", CountText(static_cast<double>(sixty.failed)), "last minute", &html);
  WriteTile("waiting", CountText(backend.workers->queued()), DropsText(*backend.workers), &html);
  WriteRunsTile(*backend.metrics, &html);
  WriteLanesTile(*backend.metrics, &html);
  const double cores = short_time.seconds > 0 ? short_time.cpu_seconds / short_time.seconds : 0;
  WriteTile("CPU cores in use", CountText(cores),
            DurationText(usage.cpu_seconds) + " since the start", &html);
  WriteTile("memory", BytesText(static_cast<double>(usage.resident_bytes)), "resident", &html);
  return html.html();
}

std::string TrafficSection(const metrics::Metrics& metrics, const Recent& recent) {
  const std::vector<RequestSeries> all = metrics.Requests();
  HtmlWriter html;
  if (all.empty()) {
    html.Markup("<p class=\"faint\">No request yet.</p>");
    return html.html();
  }
  const Recent::Interval short_time = recent.Last(kShort);
  const Recent::Interval long_time = recent.Last(kLong);
  html.Markup(
      "<div class=\"wide\"><table><thead><tr><th>model</th><th>signature</th><th>API</th>"
      "<th class=\"number\">req/s<br>10 s</th><th class=\"number\">req/s<br>1 min</th>"
      "<th class=\"number\">p50</th><th class=\"number\">p95</th><th class=\"number\">p99</th>"
      "<th class=\"number\">rows per<br>request</th><th class=\"number\">saved</th>"
      "<th class=\"number\">answered</th><th class=\"number\">errors</th></tr></thead><tbody>\n");
  for (const RequestSeries& series : all) {
    WriteTrafficRow(series, short_time, long_time, &html);
  }
  html.Markup("</tbody></table></div>");
  return html.html();
}

}  // namespace colcast::http
