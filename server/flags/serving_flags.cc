// Flags of tensorflow_model_server that have nothing to do here. They are known, so that a command
// line that starts TensorFlow Serving starts this server: what changes no answer is accepted, with
// a warning where somebody may have expected an effect; what would change answers is refused.
#include <absl/flags/flag.h>
#include <absl/flags/reflection.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/flags/parts.h"

ABSL_FLAG(int32_t, grpc_max_threads, 0, "without effect: see --num_workers");
ABSL_FLAG(int32_t, rest_api_num_threads, 0, "without effect: see --num_workers");
ABSL_FLAG(bool, flush_filesystem_caches, true, "without effect");
ABSL_FLAG(std::string, thread_pool_factory_config_file, "", "without effect");
ABSL_FLAG(bool, enable_profiler, true, "without effect: there is no profiler service");
ABSL_FLAG(bool, remove_unused_fields_from_bundle_metagraph, true, "without effect");
ABSL_FLAG(double, per_process_gpu_memory_fraction, 0, "without effect: CPU only");
ABSL_FLAG(bool, xla_cpu_compilation_enabled, false, "without effect: there is no XLA");
ABSL_FLAG(bool, xla_gpu_compilation_enabled, false, "without effect: there is no XLA");
ABSL_FLAG(bool, skip_initialize_tpu, false, "without effect: CPU only");
ABSL_FLAG(int32_t, num_tflite_pools, 1, "without effect: SavedModels only");
ABSL_FLAG(int32_t, num_tflite_interpreters_per_pool, 1, "without effect: SavedModels only");

ABSL_FLAG(std::string, platform_config_file, "", "refused: see --model_config_file");
ABSL_FLAG(std::string, mixed_precision, "", "refused: models run as they were saved");
ABSL_FLAG(bool, prefer_tflite_model, false, "refused: SavedModels only");
ABSL_FLAG(bool, use_alts_credentials, false, "refused: see --ssl_config_file");

namespace colcast::flags {
namespace {

struct KnownFlag {
  const char* name;
  const char* reason;  // in a warning or refusal if the flag has another value than its default
};

constexpr char kCpuOnly[] = "this server runs on CPUs, without XLA";
constexpr char kSavedModelsOnly[] = "this server runs SavedModels only";

constexpr KnownFlag kWithoutEffect[] = {
    {"grpc_max_threads", "requests are read and run by --num_workers workers"},
    {"rest_api_num_threads", "requests are read and run by --num_workers workers"},
    {"thread_pool_factory_config_file", "requests run on --num_workers workers"},
    {"per_process_gpu_memory_fraction", kCpuOnly},
    {"xla_cpu_compilation_enabled", kCpuOnly},
    {"xla_gpu_compilation_enabled", kCpuOnly},
    {"skip_initialize_tpu", kCpuOnly},
    {"num_tflite_pools", kSavedModelsOnly},
    {"num_tflite_interpreters_per_pool", kSavedModelsOnly},
};

constexpr KnownFlag kRefused[] = {
    {"platform_config_file",
     "what it sets up is not known here; --model_config_file names models, "
     "--tensorflow_session_config_file sets sessions up"},
    {"mixed_precision", "models run in the precision they were saved with; scores would differ"},
    {"prefer_tflite_model", kSavedModelsOnly},
    {"use_alts_credentials", "connections would be in the clear; --ssl_config_file is there"},
};

// The flag as it would stand on the command line; empty if it has its default.
std::string Changed(const char* name) {
  const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  if (flag->CurrentValue() == flag->DefaultValue()) return "";
  return std::string("--") + name + "=" + flag->CurrentValue();
}

}  // namespace

Status ReadServingFlags(std::vector<std::string>* warnings) {
  for (const KnownFlag& flag : kRefused) {
    const std::string changed = Changed(flag.name);
    if (!changed.empty()) return InvalidArgument(changed, " is refused: ", flag.reason);
  }
  for (const KnownFlag& flag : kWithoutEffect) {
    const std::string changed = Changed(flag.name);
    if (!changed.empty()) warnings->push_back(changed + " has no effect: " + flag.reason);
  }
  return OkStatus();
}

}  // namespace colcast::flags
