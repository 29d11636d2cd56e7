#include <absl/strings/str_split.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/base/thread.h"
#include "server/flags/rows.h"
#include "server/models/model_config.h"
#include "server/protos/item_table_config.pb.h"
#include "server/protos/text_proto.h"

namespace colcast::flags {

using Seconds = std::chrono::seconds;

void AddModelRows(Given* given, ServerOptions* options, Table* table) {
  models::ModelManager::Options& models = options->models;
  given->model.name = "default";
  table->Begin(kModels);
  table->Add("model_name", &given->model.name,
             "name of the model in requests; ignored with --model_config_file");
  table->Add("model_base_path", &given->model.base_path,
             "directory that holds one directory per version; ignored with --model_config_file, "
             "required without it");
  table->Add("model_config_file", &models.config_file,
             "the models to serve: a tensorflow.serving.ModelServerConfig in protobuf's text "
             "format");
  table->AddTime<Seconds>("model_config_file_poll_wait_seconds", &models.config_file_poll_wait,
                          "seconds between checks of --model_config_file; 0 reads it once", {0});
  table->Add("allow_version_labels_for_unavailable_models",
             &models.allow_labels_for_unavailable_versions,
             "new version labels may name versions that do not serve yet");
  table->Add("ready_labels", &given->ready_labels,
             "comma-separated MODEL:LABEL: the server is ready only once each of these labels also "
             "names a version that serves");
  table->AddTime<Seconds>(
      "file_system_poll_wait_seconds", &models.poll_wait,
      "seconds between searches for new versions; 0 searches once, and again after "
      "each change of configuration",
      {0});
  table->Add("max_num_load_retries", &models.retries.max_retries,
             "attempts to load a version after its first one has failed", {0});
  table->AddTime<std::chrono::microseconds>(
      "load_retry_interval_micros", &models.retries.interval,
      "microseconds between the attempts of --max_num_load_retries; below 0 there is no pause", {});
  table->Add("num_load_threads", &models.num_load_threads,
             "versions that load concurrently, once models serve; 0 means one", {0, kMostThreads});
  table->Add("num_unload_threads", &models.num_unload_threads,
             "versions that are freed concurrently; 0 means one", {0, kMostThreads});

  models::Loader::Options& loader = models.loader;
  table->Add("saved_model_tags", &loader.tags,
             "comma-separated tags of the MetaGraph to load from the SavedModel");
  table->Begin(kLimits);
  table->Add("load_memory_margin_fraction", &loader.memory_margin_fraction,
             "a version is loaded only if its size on disk, ten times its graph's, and this "
             "fraction of both fit in the available memory; -1 turns the check off",
             {-1});
  table->Begin(kModels);
  table->Add("enable_model_warmup", &loader.warmup.enabled,
             "replay a version's assets.extra/tf_serving_warmup_requests before it serves");
  table->Add("num_request_iterations_for_warmup", &loader.warmup.iterations,
             "times each warm-up request is run", {0});
  LoadCheckOptions& check = options->load_check;
  table->Add("load_check", &check.enabled,
             "while other models or versions serve, a version is first loaded in a separate "
             "process, because some files crash TensorFlow");
  table->AddTime<Seconds>("load_check_timeout_seconds", &check.timeout,
                          "how long the process of a --load_check may take before the load fails",
                          {1});
  table->Begin("");
  table->Add(
      "load_check_directory", &check.directory,
      "set by the server for the process of a --load_check: the version to load before it exits");
  table->Begin(kModels);
  table->Add(Flag{"op_library",
                  "path of a library of custom ops to load before any model; may be repeated. The "
                  "ops of TF Text and Decision Forests need no flag if tensorflow-text and ydf-tf "
                  "are installed beside TensorFlow",
                  "", [paths = &options->op_libraries](const std::string& path) {
                    paths->push_back(path);
                    return OkStatus();
                  }});

  table->Begin(kItemTables);
  table->Add("item_table", &given->item_table,
             "comma-separated MODEL:KEY:DIRECTORY: requests to the model that send the column KEY "
             "may leave out the features of the table in the directory (docs/items.md)");
  table->Add("item_table_config_file", &given->item_table_config_file,
             "item tables with more settings: colcast.ItemTableConfigs in protobuf's text format");
}

namespace {

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
    constexpr double kLongest = 1e9;  // a time that clocks can represent
    const double seconds = read.poll_wait_seconds();
    const bool is_time = seconds >= 0 && seconds <= kLongest;  // false for NaN
    if (is_time && seconds > 0) {
      table.poll_wait = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    }
    table.defaults_for_unknown = read.unknown_keys() == ItemTableConfig::DEFAULTS;
    status = CheckTable(table, path);
    if (status.ok() && !is_time) {
      status = InvalidArgument(path, ": poll_wait_seconds of ", table.base_path,
                               " is not between 0 and ", kLongest);
    }
  }
  return OfFlag("item_table_config_file", std::move(status));
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

}  // namespace

Status FinishModels(const Given& given, ServerOptions* options) {
  models::ModelManager::Options& models = options->models;
  models.logs = {options->grpc.reloads.logs.directory, /*anywhere=*/true};
  models.retries.interval = std::max(models.retries.interval, std::chrono::microseconds(0));
  models.loader.warmup.iterations = std::max(1, models.loader.warmup.iterations);
  Status status = ReadReadyLabels(given, &models.ready_labels);
  if (status.ok()) status = ReadModels(given, &models);
  return status.ok() ? ReadItemTables(given, &options->item_tables) : status;
}

}  // namespace colcast::flags
