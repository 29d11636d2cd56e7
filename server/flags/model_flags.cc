#include <absl/strings/str_split.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(std::string, model_name, "default", "name of the model in requests");
ABSL_FLAG(std::string, model_base_path, "",
          "directory that holds one directory a version (required)");
ABSL_FLAG(std::string, saved_model_tags, "serve",
          "comma-separated tags of the MetaGraph to load from the SavedModel");
ABSL_FLAG(double, file_system_poll_wait_seconds, 1,
          "seconds between looks for a new version under --model_base_path");

namespace colcast::flags {

Status ReadModelFlags(models::ModelManager::Options* options) {
  if (Status status = CheckRanges({{FLAGS_file_system_poll_wait_seconds, 0}}); !status.ok()) {
    return status;
  }
  options->model_name = absl::GetFlag(FLAGS_model_name);
  options->base_path = absl::GetFlag(FLAGS_model_base_path);
  options->tags = absl::StrSplit(absl::GetFlag(FLAGS_saved_model_tags), ',');
  options->poll_wait = std::chrono::milliseconds(
      static_cast<int64_t>(absl::GetFlag(FLAGS_file_system_poll_wait_seconds) * 1000));
  if (options->base_path.empty()) {
    return InvalidArgument("--model_base_path is required: the directory of the model's versions");
  }
  if (options->model_name.empty()) return InvalidArgument("--model_name is empty");
  return OkStatus();
}

}  // namespace colcast::flags
