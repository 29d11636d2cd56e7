// The control groups that limit this process: those of a container or service, and their ancestors.
#ifndef COLCAST_SERVER_BASE_CONTROL_GROUPS_H_
#define COLCAST_SERVER_BASE_CONTROL_GROUPS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace colcast {

struct ControlGroup {
  std::filesystem::path directory;
  int version;  // version of the kernel's interface: 1 or 2
};

// The groups of a controller, "memory" or "cpu": the process's own and all its ancestors, whose
// limits also apply. Directories may be missing. `root` contains /proc and /sys/fs/cgroup.
std::vector<ControlGroup> ControlGroups(const std::string& controller, const std::string& root);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_CONTROL_GROUPS_H_
