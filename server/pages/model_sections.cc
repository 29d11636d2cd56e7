#include <cstdint>
#include <map>
#include <string_view>

#include "server/pages/sections.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"

namespace colcast::pages {

namespace {

using models::ModelSnapshot;
using models::VersionSnapshot;
using tensorflow::serving::ModelVersionStatus;

// The map's entries, sorted by name. `map` must outlive the result.
template <typename Value>
std::map<std::string_view, const Value*> Sorted(
    const google::protobuf::Map<std::string, Value>& map) {
  std::map<std::string_view, const Value*> sorted;
  for (const auto& [name, value] : map) sorted[name] = &value;
  return sorted;
}

void WriteColumns(std::string_view field,
                  const google::protobuf::Map<std::string, tensorflow::TensorInfo>& columns,
                  JsonWriter* json) {
  json->List(field, [&] {
    for (const auto& column : Sorted(columns)) {
      const tensorflow::TensorInfo& info = *column.second;
      json->Object([&] {
        json->Add({{"name", column.first}, {"dtype", tensorflow::DataType_Name(info.dtype())}});
        if (info.tensor_shape().unknown_rank()) return json->Add({{"shape", nullptr}});
        json->List("shape", [&] {
          for (const auto& dim : info.tensor_shape().dim()) json->Add(int64_t{dim.size()});
        });
      });
    }
  });
}

void WriteSignatures(const inference::Servable& servable, JsonWriter* json) {
  for (const auto& [name, signature] : Sorted(servable.signatures())) {
    // Clients have no use for signatures that restore or initialize variables.
    if (name.rfind("__saved_model", 0) == 0) continue;
    json->Object([&, &name = name, &signature = *signature] {
      json->Add({{"name", name}});
      json->List("graphs", [&] {
        for (const engine::GraphChoice& choice : servable.model().description().graphs) {
          if (choice.signature == name) json->Add(choice.says);
        }
      });
      WriteColumns("inputs", signature.inputs(), json);
      WriteColumns("outputs", signature.outputs(), json);
    });
  }
}

void WriteTables(const engine::TableMemory& tables, JsonWriter* json) {
  json->Object("tables", [&] {
    json->Add({{"mapped_bytes", tables.mapped},
               {"resident_bytes", tables.resident},
               {"locked_bytes", tables.locked},
               {"checked_bytes", tables.checked},
               {"changed_bytes", tables.changed},
               {"deltas", tables.deltas},
               {"delta_error", tables.delta_error}});
    json->List("tables", [&] {
      for (const engine::TableMemory::Table& table : tables.tables) {
        json->Object({{"name", table.name},
                      {"in_memory_because", table.why_in_memory},
                      {"last_delta", table.last_delta}});
      }
    });
  });
}

void WriteVersion(const VersionSnapshot& version, JsonWriter* json) {
  const models::VersionStatus& status = version.status;
  const engine::TableMemory tables =
      version.servable == nullptr ? engine::TableMemory() : version.servable->model().tables();
  const bool is_damaged = !tables.damage.empty();
  json->Add({{"version", std::to_string(status.version)},
             {"state",
              ModelVersionStatus::State_Name(static_cast<ModelVersionStatus::State>(status.state))},
             {"error_code", StatusName(is_damaged ? StatusCode::kDataLoss : status.error.code)},
             {"error", is_damaged ? tables.damage : status.error.message},
             {"path", version.path}});
  if (!tables.tables.empty() || !tables.delta_error.empty()) WriteTables(tables, json);
  if (version.servable != nullptr && !version.servable->model().description().notes.empty()) {
    json->List("notes", [&] {
      for (const std::string& note : version.servable->model().description().notes) json->Add(note);
    });
  }
  json->List("labels", [&] {
    for (const std::string& label : version.labels) json->Add(label);
  });
  json->List("signatures", [&] {
    if (version.servable != nullptr) WriteSignatures(*version.servable, json);
  });
}

}  // namespace

void WriteModels(const std::vector<ModelSnapshot>& models, JsonWriter* json) {
  json->List("models", [&] {
    for (const ModelSnapshot& model : models) {
      json->Object([&] {
        json->Add({{"name", model.name}, {"base_path", model.base_path}});
        json->List("versions", [&] {
          for (const VersionSnapshot& version : model.versions) {
            json->Object([&] { WriteVersion(version, json); });
          }
        });
      });
    }
  });
}

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

// The version numbers as text, which must outlive labels made from them.
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
                 "Requests that a shadow version also ran.");
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
                 "Requests that were drawn for a shadow version but not run.");
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
