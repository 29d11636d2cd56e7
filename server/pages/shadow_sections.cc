#include <cstdint>

#include "server/pages/sections.h"

namespace colcast::pages {
namespace {

using metrics::Labels;
using metrics::MetricType;
using metrics::TextWriter;
using shadow::OutputCounts;
using shadow::Shadows;
using shadow::VersionCounts;

void WriteVersions(const VersionCounts& counts, JsonWriter* json) {
  json->Add({{"model", counts.versions.model},
             {"live", std::to_string(counts.versions.live)},
             {"shadow", std::to_string(counts.versions.shadow)},
             {"compared", counts.compared},
             {"other_form", counts.other_form},
             {"failed", counts.failed},
             {"last_error", counts.last_error}});
  json->List("outputs", [&] {
    for (const OutputCounts& output : counts.outputs) {
      json->Object({{"output", output.name},
                    {"largest_difference", output.largest},
                    {"same_top_10", output.same_top10},
                    {"other_top_10", output.other_top10}});
    }
  });
}

void WriteNotRun(const Shadows& shadows, JsonWriter* json) {
  for (const auto& [model, counts] : shadows.counts().not_run()) {
    json->Object([&, &model = model, &counts = counts] {
      json->Add({{"model", model}});
      json->Object("reasons", [&] {
        for (int i = 0; i < shadow::kNumNotRun; ++i) {
          json->Add({{shadow::NotRunName(static_cast<shadow::NotRun>(i)), counts[i]}});
        }
      });
    });
  }
}

// The versions' numbers as text, to which labels point.
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

void WriteShadows(const Shadows& shadows, JsonWriter* json) {
  if (!shadows.any()) return;
  json->Object("shadows", [&] {
    json->List("versions", [&] {
      for (const VersionCounts& counts : shadows.counts().versions()) {
        json->Object([&] { WriteVersions(counts, json); });
      }
    });
    json->List("not_run", [&] { WriteNotRun(shadows, json); });
  });
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

}  // namespace colcast::pages
