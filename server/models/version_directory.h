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
  // Of the names, sizes and times of its files; 0: not looked at.
  uint64_t files = 0;
};

// What `files` is for a directory: another value once a file comes, grows or is replaced.
uint64_t FilesOf(const std::string& directory);

// An error that names the file if one that a load reads is there and cannot be read: a FIFO, a
// directory in place of a file, no permission.
Status CheckFiles(const std::string& directory);

struct BasePathListing {
  bool readable = false;                   // false: missing, or for now not there
  bool is_version = false;                 // it holds a graph itself
  std::vector<VersionDirectory> versions;  // in rising order
  std::vector<std::string> unnumbered;     // directories with a graph, such as "v0.1"
  std::vector<std::string> warnings;       // a sentence for each thing that was left out
};

// The versions under `base_path`: directories whose name is a decimal number that fits an int64 and
// that hold a saved_model.pb or .pbtxt. One that holds neither is still being copied and left out.
// Of two names for one number ("7", "007") the last in byte order counts. Links are followed.
BasePathListing ListVersions(const std::string& base_path);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_VERSION_DIRECTORY_H_
