// libFuzzer target: reads a --model_config_file or refuses it with an error message.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "server/models/model_config.h"

namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<colcast::models::ModelConfig> models;
  const colcast::Status status =
      colcast::models::ParseModelConfig(text, "models.config", {}, &models);
  if (!status.ok()) {
    Check(status.code == colcast::StatusCode::kInvalidArgument && !status.message.empty());
    return 0;
  }
  std::set<std::string> names;
  for (const auto& model : models) {
    Check(!model.name.empty() && names.insert(model.name).second);
    Check(!model.base_path.empty() && model.base_path.front() == '/');
  }
  return 0;
}
