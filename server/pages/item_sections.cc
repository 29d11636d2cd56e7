#include <algorithm>
#include <chrono>
#include <cstdint>

#include "server/pages/sections.h"

namespace colcast::pages {
namespace {

using items::ItemTableSource;
using metrics::MetricType;

// Seconds since a file's creation time; 0 if it has none.
int64_t AgeOf(int64_t created) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return created == 0 ? 0 : std::max<int64_t>(0, seconds - created);
}

struct Figures {
  int64_t rows = 0, bytes = 0, deltas = 0, version = 0, age = 0, delta_age = 0;
  int64_t lookups = 0, unknown = 0, failed = 0;
};

Figures FiguresOf(const ItemTableSource::Stats& stats) {
  Figures figures;
  figures.lookups = stats.lookups;
  figures.unknown = stats.unknown_keys;
  figures.version = stats.version;
  figures.failed = stats.status.ok() ? 0 : 1;
  if (stats.table == nullptr) return figures;
  figures.rows = stats.table->rows();
  figures.bytes = stats.table->bytes();
  figures.deltas = stats.table->deltas();
  figures.age = AgeOf(stats.table->header().created);
  figures.delta_age = AgeOf(stats.table->oldest_delta());
  return figures;
}

}  // namespace

void WriteItemTables(const items::ItemTables& tables, JsonWriter* json) {
  json->List("item_tables", [&] {
    for (const auto& source : tables.sources()) {
      const ItemTableSource::Stats stats = source->stats();
      const Figures figures = FiguresOf(stats);
      json->Object({{"model", source->config().model},
                    {"key", source->config().key},
                    {"version", std::to_string(figures.version)},
                    {"rows", figures.rows},
                    {"bytes", figures.bytes},
                    {"age_seconds", figures.age},
                    {"deltas", figures.deltas},
                    {"oldest_delta_age_seconds", figures.delta_age},
                    {"lookups", figures.lookups},
                    {"unknown_keys", figures.unknown},
                    {"error", stats.status.message}});
    }
  });
}

void WriteItemTables(const items::ItemTables& tables, metrics::TextWriter* writer) {
  const struct {
    const char* name;
    MetricType type;
    const char* help;
    int64_t Figures::*value;
  } kMetrics[] = {
      {":colcast:item_table_rows", MetricType::kGauge, "Rows of an item table.", &Figures::rows},
      {":colcast:item_table_bytes", MetricType::kGauge, "Its files, mapped into memory.",
       &Figures::bytes},
      {":colcast:item_table_version", MetricType::kGauge, "The number of the version that serves.",
       &Figures::version},
      {":colcast:item_table_age_seconds", MetricType::kGauge, "Since it was built.", &Figures::age},
      {":colcast:item_table_deltas", MetricType::kGauge, "Deltas applied to it.", &Figures::deltas},
      {":colcast:item_table_oldest_delta_age_seconds", MetricType::kGauge,
       "Since the oldest of them was made; 0 if there is none.", &Figures::delta_age},
      {":colcast:item_table_refused", MetricType::kGauge,
       "1 if a newer version or delta could not be loaded.", &Figures::failed},
      {":colcast:item_lookups_total", MetricType::kCounter, "Keys looked up.", &Figures::lookups},
      {":colcast:item_unknown_keys_total", MetricType::kCounter, "Keys that the table has not.",
       &Figures::unknown},
  };
  for (const auto& metric : kMetrics) {
    writer->Metric(metric.name, metric.type, metric.help);
    for (const auto& source : tables.sources()) {
      writer->Sample({{"model_name", source->config().model}, {"key", source->config().key}},
                     FiguresOf(source->stats()).*metric.value);
    }
  }
}

}  // namespace colcast::pages
