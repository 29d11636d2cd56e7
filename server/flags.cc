#include "server/flags.h"

#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/flags/usage.h>
#include <absl/flags/usage_config.h>
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

ABSL_FLAG(int32_t, port, 8500, "TCP port for gRPC; 0 takes any free one and logs which");
ABSL_FLAG(std::string, host, "0.0.0.0", "address to listen on");
ABSL_FLAG(std::string, model_name, "default", "name of the model in requests");
ABSL_FLAG(std::string, model_base_path, "",
          "directory that holds one directory a version (required)");
ABSL_FLAG(std::string, saved_model_tags, "serve",
          "comma-separated tags of the MetaGraph to load from the SavedModel");
ABSL_FLAG(double, file_system_poll_wait_seconds, 1,
          "seconds between looks for a new version under --model_base_path");
ABSL_FLAG(int32_t, tensorflow_session_parallelism, 0,
          "threads for one operation and for the operations of one request; 0: as the two flags "
          "below say");
ABSL_FLAG(int32_t, tensorflow_intra_op_parallelism, 0, "threads one operation may use; 0: one");
ABSL_FLAG(int32_t, tensorflow_inter_op_parallelism, 0,
          "threads the operations of requests are spread over; 0: each request runs on its "
          "worker's thread alone");
ABSL_FLAG(int32_t, num_workers, 0, "requests that run at the same time; 0: one a core");
ABSL_FLAG(int32_t, max_queued_requests, 1000,
          "requests that may wait for a worker; one more is answered RESOURCE_EXHAUSTED");
ABSL_FLAG(bool, enable_serialization_as_tensor_content, false,
          "answer with tensor_content in place of typed fields");

namespace colcast {
namespace {

constexpr char kVersion[] = "colcast_model_server " COLCAST_VERSION "\n";

Status CheckAtLeast(const char* flag, double value, double least) {
  if (value >= least && std::isfinite(value)) return OkStatus();
  return InvalidArgument("--", flag, "=", value, ": expected at least ", least);
}

Status CheckRanges() {
  const struct {
    const char* flag;
    double value;
    double least;
  } kRanges[] = {
      {"port", static_cast<double>(absl::GetFlag(FLAGS_port)), 0},
      {"file_system_poll_wait_seconds", absl::GetFlag(FLAGS_file_system_poll_wait_seconds), 0},
      {"tensorflow_session_parallelism",
       static_cast<double>(absl::GetFlag(FLAGS_tensorflow_session_parallelism)), 0},
      {"tensorflow_intra_op_parallelism",
       static_cast<double>(absl::GetFlag(FLAGS_tensorflow_intra_op_parallelism)), 0},
      {"tensorflow_inter_op_parallelism",
       static_cast<double>(absl::GetFlag(FLAGS_tensorflow_inter_op_parallelism)), 0},
      {"num_workers", static_cast<double>(absl::GetFlag(FLAGS_num_workers)), 0},
      {"max_queued_requests", static_cast<double>(absl::GetFlag(FLAGS_max_queued_requests)), 1},
  };
  for (const auto& range : kRanges) {
    if (Status status = CheckAtLeast(range.flag, range.value, range.least); !status.ok()) {
      return status;
    }
  }
  if (absl::GetFlag(FLAGS_port) > 65535) {
    return InvalidArgument("--port=", absl::GetFlag(FLAGS_port), ": expected at most 65535");
  }
  return OkStatus();
}

engine::Options EngineOptions() {
  const int both = absl::GetFlag(FLAGS_tensorflow_session_parallelism);
  engine::Options options;
  options.intra_op_parallelism =
      both > 0 ? both : std::max(1, absl::GetFlag(FLAGS_tensorflow_intra_op_parallelism));
  options.inter_op_parallelism =
      both > 0 ? both : absl::GetFlag(FLAGS_tensorflow_inter_op_parallelism);
  return options;
}

}  // namespace

Status ParseFlags(int argc, char** argv, ServerOptions* options) {
  absl::SetProgramUsageMessage(
      "serves a TensorFlow ranking model over gRPC, with TensorFlow Serving's API\n\n"
      "  colcast_model_server --model_name=NAME --model_base_path=DIRECTORY [--port=8500]");
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) {
    return absl::EndsWith(file, "server/flags.cc");
  };
  usage.version_string = [] { return std::string(kVersion); };
  absl::SetFlagsUsageConfig(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) return InvalidArgument("unexpected argument \"", rest[1], "\"");
  if (Status status = CheckRanges(); !status.ok()) return status;
  if (absl::GetFlag(FLAGS_model_base_path).empty()) {
    return InvalidArgument("--model_base_path is required: the directory of the model's versions");
  }
  if (absl::GetFlag(FLAGS_model_name).empty()) {
    return InvalidArgument("--model_name is empty");
  }
  options->engine = EngineOptions();
  options->model.model_name = absl::GetFlag(FLAGS_model_name);
  options->model.base_path = absl::GetFlag(FLAGS_model_base_path);
  options->model.tags = absl::StrSplit(absl::GetFlag(FLAGS_saved_model_tags), ',');
  options->model.poll_wait = std::chrono::milliseconds(
      static_cast<int64_t>(absl::GetFlag(FLAGS_file_system_poll_wait_seconds) * 1000));
  const int workers = absl::GetFlag(FLAGS_num_workers);
  options->workers.num_workers =
      workers > 0 ? workers : std::max(1u, std::thread::hardware_concurrency());
  options->workers.max_queued_requests = absl::GetFlag(FLAGS_max_queued_requests);
  options->grpc.host = absl::GetFlag(FLAGS_host);
  options->grpc.port = absl::GetFlag(FLAGS_port);
  if (absl::GetFlag(FLAGS_enable_serialization_as_tensor_content)) {
    options->encoding = TensorEncoding::kTensorContent;
  }
  return OkStatus();
}

}  // namespace colcast
