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
  // The result of FilesOf(); 0 if not computed.
  uint64_t files = 0;
};

// A hash of the names, sizes and times of the files in a directory, except deltas/
// (docs/tables.md). It changes when a file is added, grows or is replaced.
uint64_t FilesOf(const std::string& directory);

struct BasePathListing {
  bool readable = false;                   // false if missing or temporarily unavailable
  bool is_version = false;                 // the base path itself contains a graph
  std::vector<VersionDirectory> versions;  // ascending
  // Directories that contain a graph but whose names are not numbers up to 2^63-1, such as "v0.1".
  std::vector<std::string> unnumbered;
  std::vector<std::string> warnings;  // one sentence per entry that is ignored
};

// Finds the versions under `base_path`: directories that contain a saved_model.pb or .pbtxt and
// whose name is a decimal number that fits an int64. A directory without a model is ignored,
// because a copy may be in progress. If two names mean the same number ("7", "007"), the last in
// byte order counts. Links are followed.
BasePathListing ListVersions(const std::string& base_path);

// Which versions on disk a model should serve, as configured by
// tensorflow.serving.FileSystemStoragePathSourceConfig.ServableVersionPolicy.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  uint32_t num_versions = 1;      // kLatest: number of highest versions
  std::vector<int64_t> versions;  // kSpecific: sorted, without duplicates

  bool operator==(const VersionPolicy& other) const;
};

// The versions of `on_disk` that the policy selects. Both lists are ascending.
std::vector<VersionDirectory> SelectVersions(const VersionPolicy& policy,
                                             const std::vector<VersionDirectory>& on_disk);

// The versions that a kSpecific policy selects but that are not on disk.
std::vector<int64_t> MissingVersions(const VersionPolicy& policy,
                                     const std::vector<VersionDirectory>& on_disk);

// Checks that a version is complete, using the list of files in its export record. Returns OK if
// there is no record or it lists no files. Returns UNAVAILABLE if the record is truncated, or if a
// file is missing or its size or checksum differs from the list; the error names the file.
Status CheckManifest(const std::string& directory);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_VERSION_DIRECTORY_H_
