// The state of all models at one moment, for the APIs, the metrics and the status page.
#ifndef COLCAST_SERVER_MODELS_MODEL_STATUS_H_
#define COLCAST_SERVER_MODELS_MODEL_STATUS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/inference/servable.h"

namespace colcast::models {

using inference::Servable;

// The numbers are those of tensorflow.serving.ModelVersionStatus.State.
enum class VersionState { kStart = 10, kLoading = 20, kAvailable = 30, kUnloading = 40, kEnd = 50 };

struct VersionStatus {
  int64_t version = 0;
  VersionState state = VersionState::kStart;
  Status error;  // why the version ended or its last load failed; otherwise OK
};

struct VersionSnapshot {
  VersionStatus status;
  std::string path;
  std::vector<std::string> labels;  // sorted
  // Null unless the version is loaded; do not hold it for long.
  std::shared_ptr<const Servable> servable;
};

struct ModelSnapshot {
  std::string name;
  std::string base_path;
  int64_t base_path_read = 0;  // the last time that succeeded, in seconds since 1970; 0 for never
  int64_t refused = 0;         // versions to serve that could not be loaded or cannot answer
  std::vector<VersionSnapshot> versions;  // ascending
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MODEL_STATUS_H_
