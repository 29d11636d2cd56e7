#include <cstdint>
#include <string>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(int64_t, request_log_max_file_bytes, 256 << 20,
          "size at which a log of requests (a model's logging_config) goes on in a new file");
ABSL_FLAG(std::string, request_log_directory, "",
          "the folder below which logs of requests are written. Without it --model_config_file may "
          "name any absolute path, and a reload over the network may turn no log on");

namespace colcast::flags {

Status ReadRequestLogFlags(request_log::RequestLogs::Options* options,
                           request_log::LogPlaces* places) {
  options->max_file_bytes = absl::GetFlag(FLAGS_request_log_max_file_bytes);
  places->directory = absl::GetFlag(FLAGS_request_log_directory);
  if (!places->directory.empty() && places->directory.front() != '/') {
    return InvalidArgument("--request_log_directory is \"", places->directory,
                           "\", expected an absolute path");
  }
  return CheckRanges({{FLAGS_request_log_max_file_bytes, 1}});
}

}  // namespace colcast::flags
