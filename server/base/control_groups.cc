#include "server/base/control_groups.h"

#include <fstream>

namespace colcast {
namespace {

namespace fs = std::filesystem;

void AddWithThoseAbove(fs::path directory, const fs::path& group, int version,
                       std::vector<ControlGroup>* found) {
  found->push_back({directory, version});
  for (const fs::path& part : group.relative_path()) {
    directory /= part;
    found->push_back({directory, version});
  }
}

}  // namespace

std::vector<ControlGroup> ControlGroups(const std::string& controller, const std::string& root) {
  std::vector<ControlGroup> found;
  const fs::path mount = root + "/sys/fs/cgroup";
  // Lines have the form "ID:CONTROLLERS:GROUP"; version 2 has ID 0 and no controllers. In a
  // container the mount point may be the group itself, so its own files are examined too.
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      AddWithThoseAbove(mount, group, 2, &found);
    } else if (controllers.find(',' + controller + ',') != std::string::npos) {
      AddWithThoseAbove(mount / controller, group, 1, &found);
    }
  }
  return found;
}

}  // namespace colcast
