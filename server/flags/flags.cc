#include "server/flags/flags.h"

#include <absl/flags/parse.h>
#include <absl/flags/usage.h>
#include <absl/flags/usage_config.h>
#include <absl/strings/match.h>

#include <string>
#include <vector>

#include "server/flags/parts.h"
#include "server/flags/unknown_flags.h"

namespace colcast {
namespace {

constexpr char kVersion[] = "colcast_model_server " COLCAST_VERSION
                            "\nTensorFlow Library: " COLCAST_TENSORFLOW_VERSION "\n";

Status ParseCommandLine(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "serves TensorFlow ranking models with TensorFlow Serving's API\n\n"
      "  colcast_model_server --model_name=NAME --model_base_path=DIRECTORY [--port=8500]");
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) {
    return absl::StrContains(file, "server/flags/");
  };
  usage.version_string = [] { return std::string(kVersion); };
  absl::SetFlagsUsageConfig(usage);
  if (Status status = flags::CheckFlagNames(argc, argv); !status.ok()) return status;
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) return InvalidArgument("unexpected argument \"", rest[1], "\"");
  return OkStatus();
}

}  // namespace

Status ParseFlags(int argc, char** argv, ServerOptions* options) {
  if (Status status = ParseCommandLine(argc, argv); !status.ok()) return status;
  bool num_workers_given = false;
  for (const Status& status : {
           flags::ReadServingFlags(&options->warnings),
           flags::ReadEngineFlags(&options->engine),
           flags::ReadSessionFlags(&options->engine),
           flags::ReadLoadCheckFlags(&options->load_check),
           flags::ReadOpLibraryFlags(&options->op_libraries, &options->load_check.op_library),
           flags::ReadGrpcFlags(&options->grpc),
           flags::ReadOffloadFlags(&options->grpc.offload),
           flags::ReadOperationFlags(&options->log_format, &options->drain,
                                     &options->drain_timeout),
           flags::ReadTlsFlags(&options->grpc.tls),
           flags::ReadRequestFlags(&options->workers, &num_workers_given, &options->encoding,
                                   &options->calls),
           flags::ReadBatchingFlags(&options->workers, num_workers_given,
                                    &options->models.loader.batching, &options->warnings),
           flags::ReadRequestLogFlags(&options->request_logs, &options->grpc.reloads.logs),
           flags::ReadModelFlags(options->grpc.reloads.logs.directory, &options->models),
           flags::ReadShadowFlags(options->models, &options->shadows.versions, &options->warnings),
           flags::ReadItemFlags(&options->item_tables),
           flags::ReadRestFlags(&options->http, &options->model_api),
           flags::ReadCallerFlags(
               options->grpc.tls && !options->grpc.tls->client_authorities.empty(),
               &options->callers),
           flags::ReadMonitoringFlags(&options->metrics_path),
           flags::ReadTracingFlags(&options->tracing),
       }) {
    if (!status.ok()) return status;
  }
  options->calls.max_request_rows = options->engine.max_request_rows;
  options->calls.max_expanded_bytes = options->engine.max_expanded_bytes;
  return OkStatus();
}

}  // namespace colcast
