// The versions of a model on disk: BASE/123/saved_model.pb and so on.
#ifndef COLCAST_SERVER_MODELS_VERSION_DIRECTORY_H_
#define COLCAST_SERVER_MODELS_VERSION_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace colcast::models {

struct VersionDirectory {
  int64_t version = 0;
  std::string path;
};

// The versions under `base_path` in rising order: directories whose name is a decimal number that
// fits an int64 and that hold a saved_model.pb or .pbtxt. One that holds neither is still being
// copied and left out. Links are followed. A base path that is missing has no versions.
std::vector<VersionDirectory> ListVersions(const std::string& base_path);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_VERSION_DIRECTORY_H_
