#include <cmath>
#include <cstdint>
#include <cstdio>

#include "server/http/pages/html_writer.h"
#include "server/http/pages/sections.h"

namespace colcast::http {
namespace {

using metrics::Labels;
using metrics::MetricType;
using metrics::TextWriter;
using shadow::OutputCounts;
using shadow::Shadows;
using shadow::VersionCounts;

std::string DifferenceText(double difference) {
  if (std::isinf(difference)) return "infinite";
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", difference);
  return text;
}

std::string ShareText(int64_t part, int64_t rest) {
  if (part + rest == 0) return "–";
  char text[32];
  const double share = static_cast<double>(part) / static_cast<double>(part + rest);
  std::snprintf(text, sizeof(text), "%.3g %%", 100 * share);
  return text;
}

void WriteRow(const VersionCounts& counts, const OutputCounts* output, HtmlWriter* html) {
  html->Markup("<tr>").Cell(counts.versions.model);
  html->NumberCell(std::to_string(counts.versions.live));
  html->NumberCell(std::to_string(counts.versions.shadow));
  html->NumberCell(CountText(static_cast<double>(counts.compared)));
  html->NumberCell(CountText(static_cast<double>(counts.other_form)));
  html->NumberCell(CountText(static_cast<double>(counts.failed)));
  html->Cell(output == nullptr ? "–" : output->name);
  html->NumberCell(output == nullptr ? "–" : DifferenceText(output->largest));
  html->NumberCell(output == nullptr ? "–" : ShareText(output->other_top10, output->same_top10));
  html->Cell(counts.last_error).Markup("</tr>\n");
}

void WriteNotRun(const Shadows& shadows, HtmlWriter* html) {
  for (const auto& [model, counts] : shadows.counts().not_run()) {
    html->Markup("<p class=\"faint\">").Text(model).Markup(": not run:");
    for (int i = 0; i < shadow::kNumNotRun; ++i) {
      if (counts[i] == 0) continue;
      html->Markup(" ").Text(CountText(static_cast<double>(counts[i]))).Markup(" ");
      html->Text(shadow::NotRunName(static_cast<shadow::NotRun>(i)));
    }
    html->Markup("</p>\n");
  }
}

// The versions' numbers as text, which labels point into.
struct Numbers {
  explicit Numbers(const VersionCounts& counts)
      : live(std::to_string(counts.versions.live)),
        shadow(std::to_string(counts.versions.shadow)) {}

  std::string live;
  std::string shadow;
};

Labels LabelsOf(const VersionCounts& counts, const Numbers& numbers) {
  return {{"model_name", counts.versions.model},
          {"live_version", numbers.live},
          {"shadow_version", numbers.shadow}};
}

void WriteOutcomes(const std::vector<VersionCounts>& versions, TextWriter* writer) {
  writer->Metric(":colcast:shadow_requests_total", MetricType::kCounter,
                 "Requests that a shadow version ran, too.");
  for (const VersionCounts& counts : versions) {
    const Numbers numbers(counts);
    Labels labels = LabelsOf(counts, numbers);
    labels.emplace_back("outcome", "compared");
    writer->Sample(labels, counts.compared);
    labels.back().second = "other_form";
    writer->Sample(labels, counts.other_form);
    labels.back().second = "failed";
    writer->Sample(labels, counts.failed);
  }
}

// Calls write(labels, output) for each output.
template <typename Write>
void ForEachOutput(const std::vector<VersionCounts>& versions, Write&& write) {
  for (const VersionCounts& counts : versions) {
    const Numbers numbers(counts);
    for (const OutputCounts& output : counts.outputs) {
      Labels labels = LabelsOf(counts, numbers);
      labels.emplace_back("output", output.name);
      write(std::move(labels), output);
    }
  }
}

}  // namespace

std::string ShadowsSection(const Shadows& shadows) {
  HtmlWriter html;
  if (!shadows.any()) return html.html();
  html.Markup("<h2>Shadow versions</h2>\n<p class=\"faint\">Requests that a version answered and ");
  html.Markup("another one ran, too, since the start.</p>\n<div class=\"wide\"><table><thead><tr>");
  html.Markup("<th>model</th><th class=\"number\">live</th><th class=\"number\">shadow</th>");
  html.Markup("<th class=\"number\">compared</th><th class=\"number\">other form</th>");
  html.Markup("<th class=\"number\">failed</th><th>output</th>");
  html.Markup("<th class=\"number\">largest difference</th>");
  html.Markup("<th class=\"number\">other top 10</th><th>last error</th></tr></thead><tbody>\n");
  for (const VersionCounts& counts : shadows.counts().versions()) {
    for (const OutputCounts& output : counts.outputs) WriteRow(counts, &output, &html);
    if (counts.outputs.empty()) WriteRow(counts, nullptr, &html);
  }
  html.Markup("</tbody></table></div>\n");
  WriteNotRun(shadows, &html);
  return html.html();
}

void WriteShadows(const Shadows& shadows, TextWriter* writer) {
  const std::vector<VersionCounts> versions = shadows.counts().versions();
  WriteOutcomes(versions, writer);
  writer->Metric(":colcast:shadow_not_run_total", MetricType::kCounter,
                 "Requests that were drawn for a shadow version, which did not run them.");
  for (const auto& [model, counts] : shadows.counts().not_run()) {
    for (int i = 0; i < shadow::kNumNotRun; ++i) {
      const char* const reason = shadow::NotRunName(static_cast<shadow::NotRun>(i));
      writer->Sample({{"model_name", model}, {"reason", reason}}, counts[i]);
    }
  }
  writer->Metric(":colcast:shadow_largest_difference", MetricType::kGauge,
                 "The largest absolute difference of any value so far.");
  ForEachOutput(versions, [writer](const Labels& labels, const OutputCounts& output) {
    writer->Sample(labels, output.largest);
  });
  writer->Metric(":colcast:shadow_difference", MetricType::kHistogram,
                 "The largest absolute difference of each request.");
  ForEachOutput(versions, [writer](const Labels& labels, const OutputCounts& output) {
    writer->Sample(labels, output.difference);
  });
  writer->Metric(":colcast:shadow_ranked_total", MetricType::kCounter,
                 "Requests with more than ten candidates, by whether the top ten are the same.");
  ForEachOutput(versions, [writer](Labels labels, const OutputCounts& output) {
    labels.emplace_back("top_10", "same");
    writer->Sample(labels, output.same_top10);
    labels.back().second = "other";
    writer->Sample(labels, output.other_top10);
  });
}

}  // namespace colcast::http
