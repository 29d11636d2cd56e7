// Selects the versions on disk that a model should serve.
#ifndef COLCAST_SERVER_MODELS_VERSION_POLICY_H_
#define COLCAST_SERVER_MODELS_VERSION_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/models/version_directory.h"

namespace colcast::models {

// tensorflow.serving.FileSystemStoragePathSourceConfig.ServableVersionPolicy.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  uint32_t num_versions = 1;      // kLatest: how many of the highest versions
  std::vector<int64_t> versions;  // kSpecific: sorted, without repetitions

  bool operator==(const VersionPolicy& other) const;
};

// The versions of `on_disk` that the policy wants. Both are ascending.
std::vector<VersionDirectory> SelectVersions(const VersionPolicy& policy,
                                             const std::vector<VersionDirectory>& on_disk);

// The versions that a kSpecific policy wants but that are not on disk.
std::vector<int64_t> MissingVersions(const VersionPolicy& policy,
                                     const std::vector<VersionDirectory>& on_disk);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_VERSION_POLICY_H_
