#include <chrono>

#include "server/base/thread.h"
#include "server/flags/rows.h"

namespace colcast::flags {

using Seconds = std::chrono::seconds;

void AddModelRows(Given* given, ServerOptions* options, Table* table) {
  models::ModelManager::Options& models = options->models;
  given->model.name = "default";
  table->Add("model_name", &given->model.name,
             "name of the model in requests; not looked at with --model_config_file");
  table->Add("model_base_path", &given->model.base_path,
             "directory that holds one directory per version; not looked at with "
             "--model_config_file, required without");
  table->Add("model_config_file", &models.config_file,
             "the models to serve: a tensorflow.serving.ModelServerConfig in protobuf's text "
             "format");
  table->AddTime<Seconds>("model_config_file_poll_wait_seconds", &models.config_file_poll_wait,
                          "seconds between looks at --model_config_file; 0: it is read once", {0});
  table->Add("allow_version_labels_for_unavailable_models",
             &models.allow_labels_for_unavailable_versions,
             "version labels that are new may name versions that do not serve yet");
  table->Add(
      "ready_labels", &given->ready_labels,
      "comma-separated MODEL:LABEL: the server is ready only once each of these labels names "
      "a version that serves, too");
  table->AddTime<Seconds>(
      "file_system_poll_wait_seconds", &models.poll_wait,
      "seconds between looks for new versions; 0: once, and after each change of configuration",
      {0});
  table->Add("max_num_load_retries", &models.retries.max_retries,
             "attempts to load a version after one that failed", {0});
  table->AddTime<std::chrono::microseconds>(
      "load_retry_interval_micros", &models.retries.interval,
      "microseconds between the attempts of --max_num_load_retries; below 0: none", {});
  table->Add("num_load_threads", &models.num_load_threads,
             "versions that load side by side, once models serve; 0: one", {0, kMostThreads});
  table->Add("num_unload_threads", &models.num_unload_threads,
             "versions that are freed side by side; 0: one", {0, kMostThreads});

  models::Loader::Options& loader = models.loader;
  table->Add("saved_model_tags", &loader.tags,
             "comma-separated tags of the MetaGraph to load from the SavedModel");
  table->Add("load_memory_margin_fraction", &loader.memory_margin_fraction,
             "a version is loaded only if its size on disk and this fraction of that fit in the "
             "memory that is left; -1: without looking",
             {-1});
  table->Add("enable_model_warmup", &loader.warmup.enabled,
             "replay a version's assets.extra/tf_serving_warmup_requests before it serves");
  table->Add("num_request_iterations_for_warmup", &loader.warmup.iterations,
             "times each warm-up request is run", {0});
  LoadCheckOptions& check = options->load_check;
  table->Add("load_check", &check.enabled,
             "a version is first loaded in a process of its own where other models or versions "
             "serve: TensorFlow does not survive every file");
  table->AddTime<Seconds>(
      "load_check_timeout_seconds", &check.timeout,
      "how long the process of a --load_check may take; then the load has failed", {1});
  table->Add("load_check_directory", &check.directory,
             "set by the server for the process of a --load_check: the version to load, then to "
             "end");
  table->Add("op_library_check", &check.op_library,
             "set by the server for the process of a --load_check: the library to load, then to "
             "end");
  table->Add(Flag{"op_library",
                  "path of a library of custom ops to load before any model; may be given several "
                  "times. TF Text's and Decision Forests' ops are found by themselves where "
                  "tensorflow-text and ydf-tf are installed beside TensorFlow",
                  "", [paths = &options->op_libraries](const std::string& path) {
                    paths->push_back(path);
                    return OkStatus();
                  }});

  table->Add("item_table", &given->item_table,
             "comma-separated MODEL:KEY:DIRECTORY: requests to the model with a column of that key "
             "may leave out the features that the table in the directory has (docs/items.md)");
  table->Add("item_table_config_file", &given->item_table_config_file,
             "more tables, or more about them: colcast.ItemTableConfigs in protobuf's text format");
  table->Add("shadow_model_version", &given->shadow_model_version,
             "comma-separated MODEL:VERSION:SHARE or MODEL:LABEL:SHARE: the version also runs a "
             "share (over 0, at most 1) of the requests to Predict that another version of the "
             "model has answered, when a worker would be idle; answers are compared "
             "(docs/compare.md)");
}

}  // namespace colcast::flags
