#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/pages/sections.h"

namespace colcast::pages {

namespace {

using items::ItemTableSource;
using metrics::MetricType;

// Seconds since a file was created; 0 if its creation time is unknown.
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
      {":colcast:item_table_bytes", MetricType::kGauge,
       "Bytes of the table's files, which are in memory.", &Figures::bytes},
      {":colcast:item_table_version", MetricType::kGauge, "The number of the version that serves.",
       &Figures::version},
      {":colcast:item_table_age_seconds", MetricType::kGauge, "Time since the table was built.",
       &Figures::age},
      {":colcast:item_table_deltas", MetricType::kGauge, "Deltas applied to the table.",
       &Figures::deltas},
      {":colcast:item_table_oldest_delta_age_seconds", MetricType::kGauge,
       "Time since the oldest delta was made; 0 without deltas.", &Figures::delta_age},
      {":colcast:item_table_refused", MetricType::kGauge,
       "1 if a newer version or delta could not be loaded.", &Figures::failed},
      {":colcast:item_lookups_total", MetricType::kCounter, "Keys looked up.", &Figures::lookups},
      {":colcast:item_unknown_keys_total", MetricType::kCounter, "Keys that are not in the table.",
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

namespace {

using metrics::MetricType;
using models::ModelSnapshot;
using models::VersionSnapshot;
using states::StoreStats;

// Calls visit(name, version, model) for every version that is loaded.
template <typename Visit>
void ForEachLoaded(const std::vector<ModelSnapshot>& models, Visit&& visit) {
  for (const ModelSnapshot& model : models) {
    for (const VersionSnapshot& version : model.versions) {
      if (version.servable == nullptr) continue;
      visit(model.name, std::to_string(version.status.version), version.servable->model());
    }
  }
}

// One loaded version's counts, read once for all metrics.
template <typename Counts>
struct Loaded {
  std::string model;
  std::string version;
  Counts counts;
};

std::vector<Loaded<engine::StoreStats>> StoresOf(const std::vector<ModelSnapshot>& models) {
  std::vector<Loaded<engine::StoreStats>> stores;
  ForEachLoaded(
      models, [&](const std::string& name, const std::string& version, const engine::Model& model) {
        for (const engine::StoreStats& store : model.stats().stores) {
          stores.push_back({name, version, store});
        }
      });
  return stores;
}

std::vector<Loaded<engine::TableMemory>> MappedTablesOf(const std::vector<ModelSnapshot>& models) {
  std::vector<Loaded<engine::TableMemory>> tables;
  ForEachLoaded(
      models, [&](const std::string& name, const std::string& version, const engine::Model& model) {
        engine::TableMemory memory = model.tables();
        if (memory.mapped > 0) tables.push_back({name, version, std::move(memory)});
      });
  return tables;
}

}  // namespace

void WriteStates(const std::vector<ModelSnapshot>& models, JsonWriter* json) {
  json->List("states", [&] {
    for (const auto& [model, version, store] : StoresOf(models)) {
      json->Object({{"model", model},
                    {"version", version},
                    {"signature", store.signature},
                    {"store", store.counted.store},
                    {"found", store.counted.found},
                    {"computed", store.counted.computed},
                    {"evicted", store.counted.evicted},
                    {"states", store.counted.states},
                    {"bytes", store.counted.bytes}});
    }
  });
}

void WritePrograms(const std::vector<ModelSnapshot>& models, metrics::TextWriter* writer) {
  writer->Metric(
      ":colcast:program_total", MetricType::kCounter,
      "Runs of the programs that answer a signature. After a failed run, another program ran.");
  ForEachLoaded(
      models, [&](const std::string& name, const std::string& version, const engine::Model& model) {
        for (const engine::ProgramStats& ran : model.stats().programs) {
          writer->Sample({{"model_name", name},
                          {"version", version},
                          {"signature_name", ran.signature},
                          {"program", ran.program},
                          {"outcome", ran.outcome}},
                         ran.count);
        }
      });
}

void WriteTables(const std::vector<ModelSnapshot>& models, metrics::TextWriter* writer) {
  writer->Metric(":colcast:table_bytes", MetricType::kGauge,
                 "Bytes of tables that stay in the checkpoint's files (mapped); how many of them "
                 "are in memory (resident), locked there, and found to have the saved checksum "
                 "(checked); rows in memory that deltas changed (changed).");
  const std::vector<Loaded<engine::TableMemory>> mapped = MappedTablesOf(models);
  for (const auto& [name, version, memory] : mapped) {
    for (const auto& [kind, bytes] : {std::pair<std::string_view, int64_t>{"mapped", memory.mapped},
                                      {"resident", memory.resident},
                                      {"locked", memory.locked},
                                      {"checked", memory.checked},
                                      {"changed", memory.changed}}) {
      writer->Sample({{"model_name", name}, {"version", version}, {"kind", kind}}, bytes);
    }
  }
  writer->Metric(":colcast:table_deltas", MetricType::kGauge, "Deltas of tables that are applied.");
  for (const auto& [name, version, memory] : mapped) {
    writer->Sample({{"model_name", name}, {"version", version}}, memory.deltas);
  }
  writer->Metric(":colcast:table_delta_refused", MetricType::kGauge,
                 "1 if the next delta cannot be applied.");
  for (const auto& [name, version, memory] : mapped) {
    writer->Sample({{"model_name", name}, {"version", version}},
                   int64_t{!memory.delta_error.empty()});
  }
}

void WriteStates(const std::vector<ModelSnapshot>& models, metrics::TextWriter* writer) {
  const struct {
    const char* name;
    MetricType type;
    const char* help;
    int64_t StoreStats::*value;
  } kMetrics[] = {
      {":colcast:states_found_total", MetricType::kCounter,
       "States that were cached, or being computed for another request.", &StoreStats::found},
      {":colcast:states_computed_total", MetricType::kCounter,
       "States that a stage of the model computed.", &StoreStats::computed},
      {":colcast:states_not_looked_for_total", MetricType::kCounter,
       "Rows that were not looked up, because states are hardly ever reused.",
       &StoreStats::not_looked},
      {":colcast:states_evicted_total", MetricType::kCounter,
       "States that were evicted to make room for others.", &StoreStats::evicted},
      {":colcast:states", MetricType::kGauge, "Cached states.", &StoreStats::states},
      {":colcast:state_bytes", MetricType::kGauge, "Memory of the cached states.",
       &StoreStats::bytes},
  };
  const std::vector<Loaded<engine::StoreStats>> stores = StoresOf(models);
  for (const auto& metric : kMetrics) {
    writer->Metric(metric.name, metric.type, metric.help);
    for (const auto& [model, version, store] : stores) {
      writer->Sample({{"model_name", model},
                      {"version", version},
                      {"signature_name", store.signature},
                      {"store", store.counted.store}},
                     store.counted.*metric.value);
    }
  }
}

}  // namespace colcast::pages
