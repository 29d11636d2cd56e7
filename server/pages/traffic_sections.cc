#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <vector>

#include "server/metrics/process_usage.h"
#include "server/pages/sections.h"

namespace colcast::pages {

namespace {

using metrics::HistogramSnapshot;
using metrics::Recent;
using metrics::RecentSeries;
using metrics::RequestSeries;

constexpr size_t kRows = metrics::CallMetricIndex(":colcast:rows");
constexpr size_t kRunRequests = metrics::CallMetricIndex(":colcast:run_requests");
constexpr size_t kJoined = metrics::CallMetricIndex(":colcast:joined_requests_total");
constexpr size_t kSplit = metrics::CallMetricIndex(":colcast:divided_requests_total");
constexpr size_t kBytesSaved = metrics::CallMetricIndex(":colcast:bytes_saved_total");

constexpr std::chrono::seconds kShort{10};
constexpr std::chrono::seconds kLong{60};

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

// The entry for `series` in an interval; empty if there is none.
RecentSeries Find(const Recent::Interval& interval, const RequestSeries& series) {
  for (const RecentSeries& recent : interval.requests) {
    if (recent.labels == series.labels) return recent;
  }
  return {};
}

double PerSecond(double count, const Recent::Interval& interval) {
  return interval.seconds > 0 ? count / interval.seconds : 0;
}

// Returns null without measurements.
JsonWriter::Value Quantile(const HistogramSnapshot& micros, double share) {
  if (micros.Count() == 0) return nullptr;
  return micros.Quantile(share);
}

void WriteLatency(const HistogramSnapshot& micros, JsonWriter* json) {
  json->Object("latency_micros", [&] {
    json->Add({{"p50", Quantile(micros, 0.5)},
               {"p95", Quantile(micros, 0.95)},
               {"p99", Quantile(micros, 0.99)}});
  });
}

void WriteProcess(std::string_view server_version, JsonWriter* json) {
  const metrics::ProcessUsage usage = metrics::ReadProcessUsage();
  const double up = static_cast<double>(std::time(nullptr)) - usage.start_time_seconds;
  json->Object("server", [&] {
    json->Add({{"version", server_version},
               {"uptime_seconds", std::max(0.0, up)},
               {"cpu_seconds", usage.cpu_seconds},
               {"resident_bytes", usage.resident_bytes}});
  });
}

void WriteRecent(const Recent& recent, JsonWriter* json) {
  const Recent::Interval ten = recent.Last(kShort), minute = recent.Last(kLong);
  const RecentSeries of_ten = Total(ten), of_minute = Total(minute);
  json->Object("recent", [&] {
    json->Add({{"requests_per_second_10s", PerSecond(of_ten.answered, ten)},
               {"rows_per_second_10s", PerSecond(of_ten.rows, ten)},
               {"cpu_cores_10s", PerSecond(ten.cpu_seconds, ten)},
               {"bytes_saved_per_second", PerSecond(of_minute.bytes_saved, minute)},
               {"errors", of_minute.failed}});
    WriteLatency(of_minute.latency, json);
    json->List("requests_per_second", [&] {
      for (const double rate : recent.Rates()) json->Add(rate);
    });
  });
}

void WriteQueue(const Backend& backend, JsonWriter* json) {
  const auto wait = [&](bool long_lane) {
    return Quantile(backend.metrics->LaneWait(long_lane), 0.99);
  };
  json->Object("queue", [&] {
    json->Add({{"waiting", backend.workers->queued()},
               {"wait_micros_p99", wait(/*long_lane=*/false)},
               {"long_wait_micros_p99", wait(/*long_lane=*/true)}});
    json->Object("dropped", [&] {
      for (int i = 0; i < scheduling::kNumDropReasons; ++i) {
        const auto reason = static_cast<scheduling::DropReason>(i);
        json->Add({{scheduling::DropReasonName(reason), backend.workers->dropped(reason)}});
      }
    });
  });
}

// How many requests each run answered, and how many requests ran together or in slices.
void WriteRuns(const std::vector<RequestSeries>& all, JsonWriter* json) {
  int64_t runs = 0, joined = 0, split = 0, saved = 0;
  double requests = 0;
  for (const RequestSeries& series : all) {
    runs += series.histograms[kRunRequests].Count();
    requests += series.histograms[kRunRequests].sum;
    joined += series.counts[kJoined];
    split += series.counts[kSplit];
    saved += series.counts[kBytesSaved];
  }
  json->Object("total", [&] {
    json->Add({{"runs", runs},
               {"run_requests", requests},
               {"joined_requests", joined},
               {"split_requests", split},
               {"bytes_saved", saved}});
  });
}

void WriteSeries(const RequestSeries& series, const Recent::Interval& ten,
                 const Recent::Interval& minute, JsonWriter* json) {
  const RecentSeries of_minute = Find(minute, series);
  json->Add({{"model", series.labels.model_name},
             {"signature", series.labels.signature_name},
             {"api", series.labels.api},
             {"entrypoint", series.labels.entrypoint},
             {"requests_per_second_10s", PerSecond(Find(ten, series).answered, ten)},
             {"requests_per_second", PerSecond(of_minute.answered, minute)},
             {"bytes_saved_per_second", PerSecond(of_minute.bytes_saved, minute)},
             {"requests_with_rows", series.histograms[kRows].Count()},
             {"rows", series.histograms[kRows].sum},
             {"answered", series.Answered()},
             {"errors", series.Failed()}});
  WriteLatency(of_minute.latency, json);
}

}  // namespace

void WriteTraffic(const Backend& backend, std::string_view server_version, const Recent& recent,
                  JsonWriter* json) {
  const std::vector<RequestSeries> all = backend.metrics->Requests();
  WriteProcess(server_version, json);
  WriteRecent(recent, json);
  WriteQueue(backend, json);
  WriteRuns(all, json);
  const Recent::Interval ten = recent.Last(kShort), minute = recent.Last(kLong);
  json->List("traffic", [&] {
    for (const RequestSeries& series : all) {
      json->Object([&] { WriteSeries(series, ten, minute, json); });
    }
  });
}

}  // namespace colcast::pages
