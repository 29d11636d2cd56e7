#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/metrics/exposition.h"
#include "server/metrics/text_writer.h"
#include "server/pages/pages.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace colcast::pages {

namespace {

using items::ItemTableSource;
using metrics::MetricType;
using metrics::TextWriter;
using models::ModelSnapshot;
using models::VersionSnapshot;

constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;

// An object that a family of metrics describes, such as a version, with its labels.
template <typename Row>
struct Labelled {
  std::vector<std::pair<std::string_view, std::string>> labels;
  Row row;
};

template <typename Row>
struct Family {
  const char* name;
  MetricType type;
  const char* help;
  int64_t (*value)(const Row& row);
};

template <typename Row, size_t count>
void Write(const Family<Row> (&families)[count], const std::vector<Labelled<Row>>& rows,
           TextWriter* writer) {
  for (const Family<Row>& family : families) {
    writer->Metric(family.name, family.type, family.help);
    for (const Labelled<Row>& row : rows) {
      writer->Sample({row.labels.begin(), row.labels.end()}, family.value(row.row));
    }
  }
}

// Writes one metric whose values are the rows themselves.
void Write(const char* name, MetricType type, const char* help,
           const std::vector<Labelled<int64_t>>& rows, TextWriter* writer) {
  Write<int64_t, 1>({{name, type, help, [](const int64_t& value) { return value; }}}, rows, writer);
}

// Calls visit(labels, model) for every version that is loaded.
template <typename Visit>
void ForEachLoaded(const std::vector<ModelSnapshot>& models, Visit&& visit) {
  for (const ModelSnapshot& model : models) {
    for (const VersionSnapshot& version : model.versions) {
      if (version.servable == nullptr) continue;
      visit({{"model_name", model.name}, {"version", std::to_string(version.status.version)}},
            version.servable->model());
    }
  }
}

using LabelList = std::vector<std::pair<std::string_view, std::string>>;

LabelList With(LabelList labels, const LabelList& more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

void WriteVersions(const std::vector<ModelSnapshot>& models, TextWriter* writer) {
  using tensorflow::serving::ModelVersionStatus;
  std::vector<Labelled<int64_t>> states, answered;
  std::vector<Labelled<const ModelSnapshot*>> rows;
  for (const ModelSnapshot& model : models) {
    rows.push_back({{{"model_name", model.name}}, &model});
    for (const VersionSnapshot& version : model.versions) {
      const auto state = static_cast<ModelVersionStatus::State>(version.status.state);
      const LabelList labels = {{"model_name", model.name},
                                {"version", std::to_string(version.status.version)}};
      states.push_back({With(labels, {{"state", ModelVersionStatus::State_Name(state)}}), 1});
      for (int code = 0; version.servable != nullptr && code < kNumStatusCodes; ++code) {
        const auto status = static_cast<StatusCode>(code);
        const int64_t count = version.servable->answered(status);
        if (count == 0) continue;
        answered.push_back({With(labels, {{"status", std::string(StatusName(status))}}), count});
      }
    }
  }
  Write(":colcast:model_version_state", kGauge, "1 for the state that a version is in.", states,
        writer);
  Write(":colcast:version_requests_total", kCounter, "Requests answered by each loaded version.",
        answered, writer);
  static constexpr Family<const ModelSnapshot*> kFamilies[] = {
      {":colcast:versions_refused", kGauge,
       "Versions to serve that could not be loaded or cannot answer.",
       [](const ModelSnapshot* const& model) { return model->refused; }},
      {":colcast:base_path_read_seconds", kGauge,
       "When the model's base path was last read, in seconds since 1970.",
       [](const ModelSnapshot* const& model) { return model->base_path_read; }},
  };
  Write(kFamilies, rows, writer);
}

void WriteStates(const std::vector<ModelSnapshot>& models, TextWriter* writer) {
  using Row = states::StoreStats;
  std::vector<Labelled<Row>> rows;
  std::vector<Labelled<int64_t>> programs;
  ForEachLoaded(models, [&](const LabelList& labels, const engine::Model& model) {
    const engine::ModelStats stats = model.stats();
    for (const engine::StoreStats& store : stats.stores) {
      rows.push_back({With(labels, {{"signature_name", store.signature},
                                    {"store", std::string(store.counted.store)}}),
                      store.counted});
    }
    for (const engine::ProgramStats& ran : stats.programs) {
      programs.push_back({With(labels, {{"signature_name", ran.signature},
                                        {"program", std::string(ran.program)},
                                        {"outcome", std::string(ran.outcome)}}),
                          ran.count});
    }
  });
  static constexpr Family<Row> kFamilies[] = {
      {":colcast:states_found_total", kCounter,
       "States that were cached, or being computed for another request.",
       [](const Row& row) { return row.found; }},
      {":colcast:states_computed_total", kCounter, "States that a stage of the model computed.",
       [](const Row& row) { return row.computed; }},
      {":colcast:states_not_looked_for_total", kCounter,
       "Rows that were not looked up, because states are hardly ever reused.",
       [](const Row& row) { return row.not_looked; }},
      {":colcast:states_evicted_total", kCounter,
       "States that were evicted to make room for others.",
       [](const Row& row) { return row.evicted; }},
      {":colcast:states", kGauge, "Cached states.", [](const Row& row) { return row.states; }},
      {":colcast:state_bytes", kGauge, "Memory of the cached states.",
       [](const Row& row) { return row.bytes; }},
  };
  Write(kFamilies, rows, writer);
  Write(":colcast:program_total", kCounter,
        "Runs of the programs that answer a signature. After a failed run, another program ran.",
        programs, writer);
}

void WriteTables(const std::vector<ModelSnapshot>& models, TextWriter* writer) {
  using Row = engine::TableMemory;
  std::vector<Labelled<Row>> rows;
  std::vector<Labelled<int64_t>> bytes;
  ForEachLoaded(models, [&](const LabelList& labels, const engine::Model& model) {
    const Row memory = model.tables();
    if (memory.mapped == 0) return;
    rows.push_back({labels, memory});
    for (const auto& [kind, value] : {std::pair("mapped", memory.mapped),
                                      {"resident", memory.resident},
                                      {"checked", memory.checked},
                                      {"changed", memory.changed}}) {
      bytes.push_back({With(labels, {{"kind", kind}}), value});
    }
  });
  Write(":colcast:table_bytes", kGauge,
        "Bytes of tables that stay in the checkpoint's files (mapped); how many of them are in "
        "memory (resident) and found to have the saved checksum (checked); rows in memory that "
        "deltas changed (changed).",
        bytes, writer);
  static constexpr Family<Row> kFamilies[] = {
      {":colcast:table_deltas", kGauge, "Deltas of tables that are applied.",
       [](const Row& row) { return row.deltas; }},
      {":colcast:table_delta_refused", kGauge, "1 if the next delta cannot be applied.",
       [](const Row& row) { return int64_t{!row.delta_error.empty()}; }},
  };
  Write(kFamilies, rows, writer);
}

// Seconds since a file was created; 0 if its creation time is unknown.
int64_t AgeOf(int64_t created) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return created == 0 ? 0 : std::max<int64_t>(0, seconds - created);
}

void WriteItemTables(const items::ItemTables& tables, TextWriter* writer) {
  using Row = ItemTableSource::Stats;
  std::vector<Labelled<Row>> rows;
  for (const auto& source : tables.sources()) {
    const items::ItemTableConfig& config = source->config();
    rows.push_back({{{"model_name", config.model}, {"key", config.key}}, source->stats()});
  }
  static constexpr Family<Row> kFamilies[] = {
      {":colcast:item_table_rows", kGauge, "Rows of an item table.",
       [](const Row& row) { return row.table == nullptr ? 0 : row.table->rows(); }},
      {":colcast:item_table_bytes", kGauge, "Bytes of the table's files, which are in memory.",
       [](const Row& row) { return row.table == nullptr ? 0 : row.table->bytes(); }},
      {":colcast:item_table_version", kGauge, "The number of the version that serves.",
       [](const Row& row) { return row.version; }},
      {":colcast:item_table_age_seconds", kGauge, "Time since the table was built.",
       [](const Row& row) {
         return row.table == nullptr ? 0 : AgeOf(row.table->header().created);
       }},
      {":colcast:item_table_deltas", kGauge, "Deltas applied to the table.",
       [](const Row& row) { return row.table == nullptr ? 0 : row.table->deltas(); }},
      {":colcast:item_table_oldest_delta_age_seconds", kGauge,
       "Time since the oldest delta was made; 0 without deltas.",
       [](const Row& row) { return row.table == nullptr ? 0 : AgeOf(row.table->oldest_delta()); }},
      {":colcast:item_table_refused", kGauge, "1 if a newer version or delta could not be loaded.",
       [](const Row& row) { return int64_t{!row.status.ok()}; }},
      {":colcast:item_lookups_total", kCounter, "Keys looked up.",
       [](const Row& row) { return row.lookups; }},
      {":colcast:item_unknown_keys_total", kCounter, "Keys that are not in the table.",
       [](const Row& row) { return row.unknown_keys; }},
  };
  Write(kFamilies, rows, writer);
}

void WriteQueue(const scheduling::WorkerPool& workers, TextWriter* writer) {
  Write(":colcast:queue_length", kGauge, "Requests that wait for a worker.",
        {{{}, workers.queued()}}, writer);
  std::vector<Labelled<int64_t>> dropped;
  for (int i = 0; i < scheduling::kNumDropReasons; ++i) {
    const auto reason = static_cast<scheduling::DropReason>(i);
    dropped.push_back({{{"reason", scheduling::DropReasonName(reason)}}, workers.dropped(reason)});
  }
  Write(":colcast:dropped_requests_total", kCounter,
        "Requests answered with an error before they ran.", dropped, writer);
}

// Writes TensorFlow Serving's counter, whose status code tells if a record was written or dropped.
void WriteRequestLogs(const request_log::RequestLogs& logs, TextWriter* writer) {
  std::vector<Labelled<int64_t>> rows;
  for (const request_log::LogCounts& counts : logs.Counts()) {
    for (int code = 0; code < kNumStatusCodes; ++code) {
      if (counts.records[code] == 0) continue;
      rows.push_back({{{"model_name", counts.model_name},
                       {"status_code", std::string(StatusName(static_cast<StatusCode>(code)))}},
                      counts.records[code]});
    }
  }
  Write(":tensorflow:serving:request_log_count", kCounter, "Requests that were drawn to be logged.",
        rows, writer);
}

void WriteSpans(const tracing::Tracer* tracer, TextWriter* writer) {
  std::vector<Labelled<int64_t>> rows;
  if (tracer != nullptr) {
    rows = {{{{"status", "sent"}}, tracer->exporter().sent()},
            {{{"status", "dropped"}}, tracer->exporter().dropped()}};
  }
  Write(":colcast:trace_spans_total", kCounter,
        "Spans of requests: sent to the collector, or dropped.", rows, writer);
}

}  // namespace

std::string MetricsText(const Backend& backend, std::string_view server_version) {
  TextWriter writer;
  WriteRequests(backend.metrics->Requests(), &writer);
  WriteQueue(*backend.workers, &writer);
  WriteRequestLogs(*backend.request_logs, &writer);
  const std::vector<ModelSnapshot> models = backend.models->Models();
  WriteVersions(models, &writer);
  WriteStates(models, &writer);
  WriteTables(models, &writer);
  WriteItemTables(*backend.item_tables, &writer);
  WriteSpans(backend.tracer, &writer);
  Write(":colcast:build_info", kGauge, "Always 1, labelled with the server's version.",
        {{{{"version", std::string(server_version)}}, 1}}, &writer);
  metrics::WriteProcess(&writer);
  return writer.text();
}

}  // namespace colcast::pages
