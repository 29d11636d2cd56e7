#include <chrono>
#include <cstdint>
#include <vector>

#include "server/http/pages/html_writer.h"
#include "server/http/pages/sections.h"

namespace colcast::http {
namespace {

using callers::CallerStats;
using metrics::MetricType;
using metrics::TextWriter;

double RunSeconds(const CallerStats& stats) {
  return std::chrono::duration<double>(stats.run_time).count();
}

}  // namespace

std::string CallersSection(callers::Callers* callers) {
  HtmlWriter html;
  if (callers == nullptr) return html.html();
  html.Markup("<h2>Callers</h2>\n<div class=\"wide\"><table><thead><tr><th>caller</th>");
  html.Markup("<th class=\"number\">requests</th><th class=\"number\">rows</th>");
  html.Markup("<th class=\"number\">in the model</th>");
  html.Markup("<th class=\"number\">refused: in flight</th>");
  html.Markup("<th class=\"number\">rows per second</th><th class=\"number\">burst</th></tr>");
  html.Markup("</thead><tbody>\n");
  for (const CallerStats& stats : callers->Stats()) {
    if (stats.requests == 0) continue;
    html.Markup("<tr>").Cell(stats.caller);
    html.NumberCell(CountText(static_cast<double>(stats.requests)));
    html.NumberCell(CountText(static_cast<double>(stats.rows)));
    html.NumberCell(DurationText(RunSeconds(stats)));
    for (const int64_t refused : stats.refused) {
      html.NumberCell(CountText(static_cast<double>(refused)));
    }
    html.Markup("</tr>\n");
  }
  html.Markup("</tbody></table></div>");
  return html.html();
}

void WriteCallers(callers::Callers* callers, TextWriter* writer) {
  std::vector<CallerStats> all;
  if (callers != nullptr) all = callers->Stats();
  writer->Metric(":colcast:caller_requests_total", MetricType::kCounter, "Requests answered.");
  for (const CallerStats& stats : all) writer->Sample({{"caller", stats.caller}}, stats.requests);
  writer->Metric(":colcast:caller_rows_total", MetricType::kCounter,
                 "Candidates of requests that were answered OK.");
  for (const CallerStats& stats : all) writer->Sample({{"caller", stats.caller}}, stats.rows);
  writer->Metric(":colcast:caller_run_seconds_total", MetricType::kCounter,
                 "Time in models; of a run that several requests shared, their part.");
  for (const CallerStats& stats : all) {
    writer->Sample({{"caller", stats.caller}}, RunSeconds(stats));
  }
  writer->Metric(":colcast:caller_refused_total", MetricType::kCounter,
                 "Requests refused by a limit of --quota_config_file.");
  for (const CallerStats& stats : all) {
    for (int i = 0; i < callers::kNumLimits; ++i) {
      const char* const limit = LimitName(static_cast<callers::Limit>(i));
      writer->Sample({{"caller", stats.caller}, {"limit", limit}}, stats.refused[i]);
    }
  }
}

}  // namespace colcast::http
