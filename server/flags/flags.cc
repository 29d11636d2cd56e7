#include "server/flags/flags.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/engine_library.h"
#include "server/flags/rows.h"
#include "server/flags/table.h"

namespace colcast {
namespace flags {

Status OfFlag(const char* name, Status status) {
  if (!status.ok()) status.message = std::string("--") + name + ": " + status.message;
  return status;
}

namespace {

// Flags of tensorflow_model_server that have no effect here. They are accepted, so that a command
// line for TensorFlow Serving also starts this server, with a warning if users may expect an
// effect. Flags that would change answers are refused unless they have their default value.
constexpr char kWorkers[] = "requests are read and run by --num_workers workers";
constexpr char kCpuOnly[] = "this server runs on CPUs, without XLA";
constexpr char kSavedModelsOnly[] = "this server runs SavedModels only";

struct ForeignFlag {
  std::string_view name;
  std::string_view default_value;  // a value of "true" or "false" makes it a switch
  std::string_view reason;         // empty if users would not expect an effect
  bool refused = false;
};

constexpr ForeignFlag kForeignFlags[] = {
    {"grpc_max_threads", "0", kWorkers},
    {"rest_api_num_threads", "0", kWorkers},
    {"thread_pool_factory_config_file", "", kWorkers},
    {"per_process_gpu_memory_fraction", "0", kCpuOnly},
    {"xla_cpu_compilation_enabled", "false", kCpuOnly},
    {"xla_gpu_compilation_enabled", "false", kCpuOnly},
    {"skip_initialize_tpu", "false", kCpuOnly},
    {"num_tflite_pools", "1", kSavedModelsOnly},
    {"num_tflite_interpreters_per_pool", "1", kSavedModelsOnly},
    {"flush_filesystem_caches", "true", ""},
    {"enable_profiler", "true", ""},
    {"remove_unused_fields_from_bundle_metagraph", "true", ""},
    {"platform_config_file", "",
     "its settings are unknown here; --model_config_file names models, "
     "--tensorflow_session_config_file configures sessions",
     true},
    {"mixed_precision", "", "models run in the precision they were saved with; scores would differ",
     true},
    {"prefer_tflite_model", "false", kSavedModelsOnly, true},
    {"use_alts_credentials", "false", "connections would be unencrypted; use --ssl_config_file",
     true},
};

bool IsSwitch(const ForeignFlag& flag) {
  return flag.default_value == "true" || flag.default_value == "false";
}

bool IsDefault(const ForeignFlag& flag, const std::string& value) {
  bool truth = false;
  if (!IsSwitch(flag) || !absl::SimpleAtob(value, &truth)) return value == flag.default_value;
  return (truth ? "true" : "false") == flag.default_value;
}

// Flags of earlier versions. Each is refused with one line that says what to do instead.
const std::vector<RemovedFlag>& RemovedFlags() {
  static constexpr char kOffload[] = "Envoy or the client routes large requests to another server";
  static const auto* const removed = new std::vector<RemovedFlag>{
      {"offload_rows", kOffload},
      {"offload_target", kOffload},
      {"offload_timeout_ms", kOffload},
      {"lock_tables",
       "mapped tables are read into the page cache after a load; --map_tables=off reads them into "
       "memory"},
      {"pair_bytes", "cache scores in the client; --item_state_bytes caches states"},
      {"shadow_model_version",
       "log a share of the requests (logging_config) and send them to both versions with `colcast "
       "compare`, or mirror requests with Envoy (request_mirror_policies)"},
  };
  return *removed;
}

}  // namespace

void AddRowsWithoutEffect(std::vector<std::string>* warnings, Table* table) {
  table->Begin(kWithoutEffect);
  for (const ForeignFlag& flag : kForeignFlags) {
    const auto set = [&flag, warnings](const std::string& value) {
      if (flag.reason.empty() || IsDefault(flag, value)) return OkStatus();
      if (flag.refused) return InvalidArgument("refused: ", flag.reason);
      warnings->push_back("--" + std::string(flag.name) + "=" + value +
                          " has no effect: " + std::string(flag.reason));
      return OkStatus();
    };
    table->Add({flag.name, flag.refused ? "refused" : "without effect",
                std::string(flag.default_value), set, IsSwitch(flag)});
  }
}

}  // namespace flags

namespace {

constexpr char kUsage[] =
    "colcast_model_server: serves TensorFlow ranking models with TensorFlow Serving's API\n\n"
    "  colcast_model_server --model_name=NAME --model_base_path=DIRECTORY [--port=8500]\n\n"
    "--flagfile=FILE reads flags from a file, one per line; --version prints the version.\n\n";

// Like tensorflow_model_server, exits if an argument asks for help or the version.
void AnswerHelp(const std::vector<std::string>& arguments, const flags::Table& table) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return;
    if (argument == "--version" || argument == "-version") {
      std::puts("colcast_model_server " COLCAST_VERSION);
      for (const std::string& release : EngineReleases(ExecutableFolder())) {
        std::printf("TensorFlow Library: %s\n", release.c_str());
      }
      std::exit(0);
    }
    if (argument == "--help" || argument == "-help") {
      using namespace flags;
      const std::string text =
          HelpText(table, {kListening, kModels, kRunning, kAnswers, kStates, kTables, kItemTables,
                           kExamples, kGraphs, kLimits, kCallers, kOperation, kWithoutEffect});
      std::fputs((kUsage + text).c_str(), stdout);
      std::exit(1);
    }
  }
}

}  // namespace

Status ParseFlags(int argc, char** argv, ServerOptions* options) {
  flags::Given given;
  flags::Table table;
  flags::AddServerRows(&given, options, &table);
  flags::AddModelRows(&given, options, &table);
  flags::AddRunRows(&given, options, &table);
  flags::AddRowsWithoutEffect(&options->warnings, &table);
  const std::vector<std::string> arguments(argv + std::min(1, argc), argv + argc);
  AnswerHelp(arguments, table);
  Status status = flags::ParseCommandLine(arguments, table, flags::RemovedFlags());
  if (status.ok()) status = flags::FinishServer(given, options);
  if (status.ok()) status = flags::FinishRuns(given, options);
  return status.ok() ? flags::FinishModels(given, options) : status;
}

}  // namespace colcast
