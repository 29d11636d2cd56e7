// Flags of tensorflow_model_server that have no effect here, accepted so that a command line for
// TensorFlow Serving also starts this server. Flags that change no answer are accepted, with a
// warning if a user may expect an effect; flags that would change answers are refused.
#include <absl/strings/numbers.h>

#include "server/flags/rows.h"

namespace colcast::flags {
namespace {

constexpr char kWorkers[] = "requests are read and run by --num_workers workers";
constexpr char kCpuOnly[] = "this server runs on CPUs, without XLA";
constexpr char kSavedModelsOnly[] = "this server runs SavedModels only";

struct IgnoredFlag {
  std::string_view name;
  std::string_view default_value;  // a value of "true" or "false" makes it a switch
  std::string_view reason;         // empty if nobody would expect an effect
};

constexpr IgnoredFlag kWithoutEffect[] = {
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
};

constexpr IgnoredFlag kRefused[] = {
    {"platform_config_file", "",
     "its settings are unknown here; --model_config_file names models, "
     "--tensorflow_session_config_file configures sessions"},
    {"mixed_precision", "",
     "models run in the precision they were saved with; scores would differ"},
    {"prefer_tflite_model", "false", kSavedModelsOnly},
    {"use_alts_credentials", "false", "connections would be unencrypted; use --ssl_config_file"},
};

bool IsSwitch(const IgnoredFlag& flag) {
  return flag.default_value == "true" || flag.default_value == "false";
}

bool IsDefault(const IgnoredFlag& flag, const std::string& value) {
  bool truth = false;
  if (!IsSwitch(flag) || !absl::SimpleAtob(value, &truth)) return value == flag.default_value;
  return (truth ? "true" : "false") == flag.default_value;
}

}  // namespace

void AddRowsWithoutEffect(std::vector<std::string>* warnings, Table* table) {
  for (const IgnoredFlag& flag : kWithoutEffect) {
    const auto set = [&flag, warnings](const std::string& value) {
      if (flag.reason.empty() || IsDefault(flag, value)) return OkStatus();
      warnings->push_back("--" + std::string(flag.name) + "=" + value +
                          " has no effect: " + std::string(flag.reason));
      return OkStatus();
    };
    table->Add({flag.name, "without effect", std::string(flag.default_value), set, IsSwitch(flag)});
  }
  for (const IgnoredFlag& flag : kRefused) {
    const auto set = [&flag](const std::string& value) {
      return IsDefault(flag, value) ? OkStatus() : InvalidArgument("refused: ", flag.reason);
    };
    table->Add({flag.name, "refused", std::string(flag.default_value), set, IsSwitch(flag)});
  }
}

}  // namespace colcast::flags
