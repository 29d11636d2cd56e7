#include "server/base/available_cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "server/base/control_groups.h"

namespace colcast {
namespace {

int AllowedCores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  // More cores than a cpu_set_t holds.
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Converts a quota, microseconds of CPU time per period, to cores. No quota is "max" in version 2,
// -1 in version 1.
int QuotaOf(const ControlGroup& group, int cores) {
  double quota = 0;
  double period = 0;
  if (group.version == 2) {
    std::ifstream(group.directory / "cpu.max") >> quota >> period;
  } else {
    std::ifstream(group.directory / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group.directory / "cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return cores;
  return static_cast<int>(std::min<double>(cores, std::ceil(quota / period)));
}

}  // namespace

int AvailableCores(const std::string& root) {
  int cores = AllowedCores();
  for (const ControlGroup& group : ControlGroups("cpu", root)) cores = QuotaOf(group, cores);
  return std::max(1, cores);
}

}  // namespace colcast
