// The versions of a model on disk: BASE/123/saved_model.pb and so on.
#ifndef COLCAST_SERVER_MODELS_VERSION_DIRECTORY_H_
#define COLCAST_SERVER_MODELS_VERSION_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"

namespace colcast::models {

struct VersionDirectory {
  int64_t version = 0;
  std::string path;
  // A hash over the names, sizes and times of its files; 0 if not computed.
  uint64_t files = 0;
};

// Computes `files` for a directory: the value changes when a file is added, grows or is replaced,
// except in deltas/ (docs/tables.md).
uint64_t FilesOf(const std::string& directory);

// Returns an error that names the file if a file needed for loading cannot be read: it is a FIFO or
// a directory, or permission is missing.
Status CheckFiles(const std::string& directory);

struct BasePathListing {
  bool readable = false;                   // false if it is missing or temporarily unavailable
  bool is_version = false;                 // the base path itself contains a graph
  std::vector<VersionDirectory> versions;  // ascending
  // Directories with a graph but without a number, such as "v0.1".
  std::vector<std::string> unnumbered;
  std::vector<std::string> warnings;  // a sentence for each entry that was left out
};

// The versions under `base_path`: directories named by a decimal number that fits an int64, with a
// saved_model.pb or .pbtxt. A directory with neither is still being copied, so it is left out. Of
// two names for the same number ("7", "007") the last in byte order counts. Links are followed.
BasePathListing ListVersions(const std::string& base_path);

// Which versions on disk a model should serve:
// tensorflow.serving.FileSystemStoragePathSourceConfig.ServableVersionPolicy.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  uint32_t num_versions = 1;      // kLatest: how many of the highest versions
  std::vector<int64_t> versions;  // kSpecific: sorted, without duplicates

  bool operator==(const VersionPolicy& other) const;
};

// The versions of `on_disk` that the policy wants. Both are ascending.
std::vector<VersionDirectory> SelectVersions(const VersionPolicy& policy,
                                             const std::vector<VersionDirectory>& on_disk);

// The versions that a kSpecific policy wants but that are not on disk.
std::vector<int64_t> MissingVersions(const VersionPolicy& policy,
                                     const std::vector<VersionDirectory>& on_disk);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_VERSION_DIRECTORY_H_
