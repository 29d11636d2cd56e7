#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/base/text_proto.h"
#include "server/flags/rows.h"
#include "server/models/model_config.h"
#include "server/protos/item_table_config.pb.h"

namespace colcast::flags {
namespace {

using shadow::ShadowVersion;

Status ReadModels(const Given& given, models::ModelManager::Options* options) {
  if (!options->config_file.empty()) {
    return models::ReadModelConfigFile(options->config_file, options->logs, &options->models);
  }
  if (given.model.base_path.empty()) {
    return InvalidArgument(
        "--model_base_path is required, the directory of the model's versions, or "
        "--model_config_file");
  }
  if (given.model.name.empty()) return InvalidArgument("--model_name is empty");
  options->models = {given.model};
  options->fail_if_nothing_loads = true;
  return OkStatus();
}

Status ReadReadyLabels(const Given& given, std::vector<models::ReadyLabel>* labels) {
  for (const std::string& text : given.ready_labels) {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
      return InvalidArgument("--ready_labels: \"", text, "\", expected MODEL:LABEL");
    }
    labels->push_back({parts[0], parts[1]});
  }
  return OkStatus();
}

Status CheckTable(const items::ItemTableConfig& table, const std::string& source) {
  for (const auto& [name, value] :
       {std::pair<const char*, const std::string&>{"model", table.model},
        {"key", table.key},
        {"base_path", table.base_path}}) {
    if (value.empty()) return InvalidArgument(source, ": a table without ", name);
  }
  if (table.poll_wait.count() < 0) {
    return InvalidArgument(source, ": poll_wait_seconds below 0 for ", table.base_path);
  }
  return OkStatus();
}

Status ReadTable(const std::string& text, items::ItemTableConfig* table) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 2));
  if (parts.size() != 3) {
    return InvalidArgument("--item_table: \"", text, "\", expected MODEL:KEY:DIRECTORY");
  }
  table->model = parts[0];
  table->key = parts[1];
  table->base_path = parts[2];
  return CheckTable(*table, "--item_table");
}

Status ReadTableFile(const std::string& path, std::vector<items::ItemTableConfig>* tables) {
  ItemTableConfigs file;
  Status status = ReadTextProto(path, &file);
  for (const ItemTableConfig& read : file.table()) {
    if (!status.ok()) break;
    items::ItemTableConfig& table = tables->emplace_back();
    table.model = read.model();
    table.domain = read.domain();
    table.key = read.key();
    table.base_path = read.base_path();
    if (read.poll_wait_seconds() != 0) {
      table.poll_wait =
          std::chrono::milliseconds(static_cast<int64_t>(read.poll_wait_seconds() * 1000));
    }
    table.defaults_for_unknown = read.unknown_keys() == ItemTableConfig::DEFAULTS;
    status = CheckTable(table, path);
  }
  if (!status.ok()) status.message = "--item_table_config_file: " + status.message;
  return status;
}

Status ReadItemTables(const Given& given, std::vector<items::ItemTableConfig>* tables) {
  for (const std::string& text : given.item_table) {
    Status status = ReadTable(text, &tables->emplace_back());
    if (!status.ok()) return status;
  }
  if (!given.item_table_config_file.empty()) {
    Status status = ReadTableFile(given.item_table_config_file, tables);
    if (!status.ok()) return status;
  }
  for (const items::ItemTableConfig& a : *tables) {
    for (const items::ItemTableConfig& b : *tables) {
      if (&a != &b && a.model == b.model && a.key == b.key) {
        return InvalidArgument("--item_table: two tables of model \"", a.model,
                               "\" with the key \"", a.key, "\"");
      }
    }
  }
  return OkStatus();
}

Status ReadShadow(const std::string& text, ShadowVersion* shadow) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 3 || parts[0].empty() || parts[1].empty()) {
    return InvalidArgument("--shadow_model_version: \"", text,
                           "\", expected MODEL:VERSION:SHARE or MODEL:LABEL:SHARE");
  }
  if (!absl::SimpleAtod(parts[2], &shadow->share) || !(shadow->share > 0 && shadow->share <= 1)) {
    return InvalidArgument("--shadow_model_version: the share \"", parts[2], "\" of \"", text,
                           "\" is not a number over 0 and at most 1");
  }
  shadow->spec.name = parts[0];
  int64_t version = 0;
  if (absl::SimpleAtoi(parts[1], &version)) {
    shadow->spec.version = version;
  } else {
    shadow->spec.version_label = parts[1];
  }
  return OkStatus();
}

Status ReadShadows(const Given& given, ServerOptions* options) {
  std::vector<ShadowVersion>& versions = options->shadows.versions;
  const std::vector<models::ModelConfig>& models = options->models.models;
  for (const std::string& text : given.shadow_model_version) {
    ShadowVersion shadow;
    if (Status status = ReadShadow(text, &shadow); !status.ok()) return status;
    const std::string& name = shadow.spec.name;
    if (std::any_of(versions.begin(), versions.end(),
                    [&](const ShadowVersion& other) { return other.spec.name == name; })) {
      return InvalidArgument("--shadow_model_version: two shadow versions of model \"", name, "\"");
    }
    if (std::none_of(models.begin(), models.end(),
                     [&](const models::ModelConfig& model) { return model.name == name; })) {
      options->warnings.push_back("--shadow_model_version: no model \"" + name +
                                  "\" is configured");
    }
    versions.push_back(std::move(shadow));
  }
  return OkStatus();
}

}  // namespace

Status FinishModels(const Given& given, ServerOptions* options) {
  models::ModelManager::Options& models = options->models;
  models.logs = {options->grpc.reloads.logs.directory, /*anywhere=*/true};
  models.retries.interval = std::max(models.retries.interval, std::chrono::microseconds(0));
  models.loader.warmup.iterations = std::max(1, models.loader.warmup.iterations);
  Status status = ReadReadyLabels(given, &models.ready_labels);
  if (status.ok()) status = ReadModels(given, &models);
  if (status.ok()) status = ReadShadows(given, options);
  return status.ok() ? ReadItemTables(given, &options->item_tables) : status;
}

}  // namespace colcast::flags
