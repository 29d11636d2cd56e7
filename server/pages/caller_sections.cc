#include <chrono>
#include <cstdint>
#include <vector>

#include "server/pages/sections.h"

namespace colcast::pages {
namespace {

using callers::CallerStats;
using metrics::MetricType;
using metrics::TextWriter;

double RunSeconds(const CallerStats& stats) {
  return std::chrono::duration<double>(stats.run_time).count();
}

}  // namespace

void WriteCallers(callers::Callers* callers, JsonWriter* json) {
  if (callers == nullptr) return;
  json->List("callers", [&] {
    for (const CallerStats& stats : callers->counts().All()) {
      if (stats.requests == 0) continue;
      json->Object([&] {
        json->Add({{"caller", stats.caller},
                   {"requests", stats.requests},
                   {"rows", stats.rows},
                   {"run_seconds", RunSeconds(stats)}});
      });
    }
  });
}

void WriteCallers(callers::Callers* callers, TextWriter* writer) {
  std::vector<CallerStats> all;
  if (callers != nullptr) all = callers->counts().All();
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
}

}  // namespace colcast::pages
