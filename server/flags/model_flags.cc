#include <absl/strings/str_split.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/base/thread_limit.h"
#include "server/flags/parts.h"
#include "server/flags/range.h"
#include "server/models/model_config.h"

ABSL_FLAG(std::string, model_name, "default",
          "name of the model in requests; not looked at with --model_config_file");
ABSL_FLAG(std::string, model_base_path, "",
          "directory that holds one directory per version; not looked at with --model_config_file, "
          "required without");
ABSL_FLAG(std::string, model_config_file, "",
          "the models to serve: a tensorflow.serving.ModelServerConfig in protobuf's text format");
ABSL_FLAG(double, model_config_file_poll_wait_seconds, 0,
          "seconds between looks at --model_config_file; 0: it is read once");
ABSL_FLAG(bool, allow_version_labels_for_unavailable_models, false,
          "version labels that are new may name versions that do not serve yet");
ABSL_FLAG(std::vector<std::string>, ready_labels, {},
          "comma-separated MODEL:LABEL: the server is ready only once each of these labels names a "
          "version that serves, too");
ABSL_FLAG(std::string, saved_model_tags, "serve",
          "comma-separated tags of the MetaGraph to load from the SavedModel");
ABSL_FLAG(
    double, file_system_poll_wait_seconds, 1,
    "seconds between looks for new versions; 0: once, and after each change of configuration");
ABSL_FLAG(int32_t, max_num_load_retries, 5, "attempts to load a version after one that failed");
ABSL_FLAG(int64_t, load_retry_interval_micros, 60'000'000,
          "microseconds between the attempts of --max_num_load_retries; below 0: none");
ABSL_FLAG(int32_t, num_load_threads, 0,
          "versions that load side by side, once models serve; 0: one");
ABSL_FLAG(int32_t, num_unload_threads, 0, "versions that are freed side by side; 0: one");
ABSL_FLAG(
    double, load_memory_margin_fraction, 0.2,
    "a version is loaded only if its size on disk and this fraction of that fit in the memory "
    "that is left; -1: without looking");
ABSL_FLAG(bool, load_check, true,
          "a version is first loaded in a process of its own where other models or versions serve: "
          "TensorFlow does not survive every file");
ABSL_FLAG(int32_t, load_check_timeout_seconds, 1800,
          "how long the process of a --load_check may take; then the load has failed");
ABSL_FLAG(std::string, load_check_directory, "",
          "set by the server for the process of a --load_check: the version to load, then to end");
ABSL_FLAG(bool, enable_model_warmup, true,
          "replay a version's assets.extra/tf_serving_warmup_requests before it serves");
ABSL_FLAG(int32_t, num_request_iterations_for_warmup, 1, "times each warm-up request is run");

namespace colcast::flags {
namespace {

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

Status ReadModels(models::ModelManager::Options* options) {
  options->config_file = absl::GetFlag(FLAGS_model_config_file);
  if (!options->config_file.empty()) {
    return models::ReadModelConfigFile(options->config_file, options->logs, &options->models);
  }
  models::ModelConfig model;
  model.name = absl::GetFlag(FLAGS_model_name);
  model.base_path = absl::GetFlag(FLAGS_model_base_path);
  if (model.base_path.empty()) {
    return InvalidArgument(
        "--model_base_path is required, the directory of the model's versions, or "
        "--model_config_file");
  }
  if (model.name.empty()) return InvalidArgument("--model_name is empty");
  options->models = {std::move(model)};
  options->fail_if_nothing_loads = true;
  return OkStatus();
}

Status ReadReadyLabels(std::vector<models::ReadyLabel>* labels) {
  for (const std::string& text : absl::GetFlag(FLAGS_ready_labels)) {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
      return InvalidArgument("--ready_labels: \"", text, "\", expected MODEL:LABEL");
    }
    labels->push_back({parts[0], parts[1]});
  }
  return OkStatus();
}

}  // namespace

Status ReadLoadCheckFlags(LoadCheckOptions* options) {
  options->enabled = absl::GetFlag(FLAGS_load_check);
  options->timeout = std::chrono::seconds(absl::GetFlag(FLAGS_load_check_timeout_seconds));
  options->directory = absl::GetFlag(FLAGS_load_check_directory);
  return CheckRanges({{FLAGS_load_check_timeout_seconds, 1}});
}

Status ReadModelFlags(const std::string& log_directory, models::ModelManager::Options* options) {
  Status status = CheckRanges({{FLAGS_file_system_poll_wait_seconds, 0},
                               {FLAGS_model_config_file_poll_wait_seconds, 0},
                               {FLAGS_max_num_load_retries, 0},
                               {FLAGS_num_load_threads, 0, kMostThreads},
                               {FLAGS_num_unload_threads, 0, kMostThreads},
                               {FLAGS_num_request_iterations_for_warmup, 0},
                               {FLAGS_load_memory_margin_fraction, -1}});
  if (!status.ok()) return status;
  if (status = ReadReadyLabels(&options->ready_labels); !status.ok()) return status;
  options->config_file_poll_wait =
      Milliseconds(absl::GetFlag(FLAGS_model_config_file_poll_wait_seconds));
  options->poll_wait = Milliseconds(absl::GetFlag(FLAGS_file_system_poll_wait_seconds));
  options->allow_labels_for_unavailable_versions =
      absl::GetFlag(FLAGS_allow_version_labels_for_unavailable_models);
  options->num_load_threads = absl::GetFlag(FLAGS_num_load_threads);
  options->num_unload_threads = absl::GetFlag(FLAGS_num_unload_threads);
  options->retries.max_retries = absl::GetFlag(FLAGS_max_num_load_retries);
  options->retries.interval = std::chrono::microseconds(
      std::max<int64_t>(0, absl::GetFlag(FLAGS_load_retry_interval_micros)));
  options->loader.tags = absl::StrSplit(absl::GetFlag(FLAGS_saved_model_tags), ',');
  options->loader.memory_margin_fraction = absl::GetFlag(FLAGS_load_memory_margin_fraction);
  options->loader.warmup.enabled = absl::GetFlag(FLAGS_enable_model_warmup);
  options->loader.warmup.iterations =
      std::max(1, absl::GetFlag(FLAGS_num_request_iterations_for_warmup));
  options->logs = {log_directory, /*anywhere=*/true};
  return ReadModels(options);
}

}  // namespace colcast::flags
