#include "server/engine_choice.h"

#include <algorithm>
#include <string_view>
#include <system_error>

namespace colcast {
namespace {

constexpr std::string_view kPrefix = "libcolcast_engine-";

}  // namespace

std::filesystem::path ExecutableFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

std::vector<std::string> EngineReleases(const std::filesystem::path& folder) {
  std::vector<std::string> releases;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().stem();
    if (name.rfind(kPrefix, 0) == 0) releases.push_back(name.substr(kPrefix.size()));
  }
  std::sort(releases.begin(), releases.end());
  return releases;
}

std::string NeededTensorFlow(const std::vector<std::string>& releases) {
  if (releases.empty()) return "no libcolcast_engine-*.so is beside the executable";
  std::string needed = "the server needs TensorFlow ";
  for (const std::string& release : releases) {
    needed += (&release == &releases.front() ? "" : " or ") + release;
  }
  // Two distributions that overwrite each other's files may be installed, and removing one of them
  // damages the other.
  return needed + ": pip uninstall -y tensorflow tensorflow-cpu; pip install tensorflow-cpu==" +
         releases.back();
}

Status ChooseEngine(const std::vector<std::string>& releases, const std::string& installed,
                    std::string* chosen) {
  if (installed.empty() && releases.size() == 1) {
    *chosen = releases.front();
    return OkStatus();
  }
  if (std::find(releases.begin(), releases.end(), installed) == releases.end()) {
    return NotFound("found ", installed.empty() ? "no TensorFlow" : "TensorFlow " + installed, "; ",
                    NeededTensorFlow(releases));
  }
  *chosen = installed;
  return OkStatus();
}

}  // namespace colcast
