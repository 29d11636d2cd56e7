#include <cstdint>
#include <map>

#include "server/pages/pages.h"
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
  json->Add({{"version", std::to_string(status.version)},
             {"state",
              ModelVersionStatus::State_Name(static_cast<ModelVersionStatus::State>(status.state))},
             {"error_code", StatusName(status.error.code)},
             {"error", status.error.message},
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

std::string StatusJson(const Backend& backend, std::string_view server_version) {
  JsonWriter json;
  json.Object([&] {
    json.Object("server", [&] { json.Add({{"version", server_version}}); });
    WriteModels(backend.models->Models(), &json);
    json.List("item_tables", [&] {
      for (const auto& source : backend.item_tables->sources()) {
        json.Object({{"model", source->config().model},
                     {"key", source->config().key},
                     {"error", source->stats().status.message}});
      }
    });
  });
  return json.text();
}

}  // namespace colcast::pages
