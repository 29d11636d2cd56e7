#include "server/base/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

// Defined by jemalloc; null in tests, which use another allocator.
extern "C" {
int mallctl(const char* name, void* old, size_t* old_size, void* now, size_t now_size)
    __attribute__((weak));
int mallctlnametomib(const char* name, size_t* mib, size_t* length) __attribute__((weak));
int mallctlbymib(const size_t* mib, size_t length, void* old, size_t* old_size, void* now,
                 size_t now_size) __attribute__((weak));
}

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
  // container, the mount point may itself be the group, so it is included.
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

namespace {

int AllowedCores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  // The call fails if the machine has more cores than a cpu_set_t can hold.
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Converts a CPU quota, in microseconds per period, to cores. Without a quota, version 2 says "max"
// and version 1 says -1.
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

namespace {

// A jemalloc control, with its name looked up only once.
struct Control {
  explicit Control(const char* name) {
    if (mallctlnametomib != nullptr && mallctlnametomib(name, mib, &length) != 0) length = 0;
  }

  size_t mib[3] = {};
  size_t length = mallctlnametomib == nullptr ? 0 : 3;
};

template <typename Number>
Number ReadNumber(const char* name) {
  Number number = 0;
  size_t size = sizeof(number);
  return mallctl(name, &number, &size, nullptr, 0) == 0 ? number : 0;
}

}  // namespace

AllocationPeak::AllocationPeak() {
  static const Control reset("thread.peak.reset");
  if (reset.length > 0) mallctlbymib(reset.mib, reset.length, nullptr, nullptr, nullptr, 0);
}

int64_t AllocationPeak::bytes() const {
  static const Control read("thread.peak.read");
  if (read.length == 0) return 0;
  uint64_t peak = 0;
  size_t size = sizeof(peak);
  const int error = mallctlbymib(read.mib, read.length, &peak, &size, nullptr, 0);
  return error == 0 ? static_cast<int64_t>(peak) : 0;
}

int64_t ReusableAddressSpace() {
  if (mallctl == nullptr) return 0;
  uint64_t epoch = 1;  // refreshes the statistics
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch));
  // 4096 is MALLCTL_ARENAS_ALL.
  const size_t pages = ReadNumber<size_t>("stats.arenas.4096.pdirty") +
                       ReadNumber<size_t>("stats.arenas.4096.pmuzzy");
  return static_cast<int64_t>(ReadNumber<size_t>("stats.retained") + pages * sysconf(_SC_PAGESIZE));
}

namespace {

namespace fs = std::filesystem;

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Reads a file that contains one number. Returns nullopt for "max", which version 2 uses.
std::optional<int64_t> ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Reads the number after `key` in a file of lines "key number".
std::optional<int64_t> ReadField(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    int64_t number = 0;
    if (words >> name >> number && name == key) return number;
  }
  return std::nullopt;
}

// Reads a field such as "MemAvailable:" or "MemTotal:".
int64_t MachineHas(const std::string& root, const std::string& field) {
  const std::optional<int64_t> kib = ReadField(root + "/proc/meminfo", field);
  return kib ? *kib * 1024 : kUnlimited;
}

// File names for the two versions of control groups.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* cache;  // field of memory.stat for page cache that can be dropped
};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};

int64_t GroupAllows(const fs::path& group, const GroupFiles& files) {
  const std::optional<int64_t> limit = ReadNumber(group / files.limit);
  const std::optional<int64_t> usage = ReadNumber(group / files.usage);
  if (!limit || !usage) return kUnlimited;
  const int64_t cache = ReadField(group / "memory.stat", files.cache).value_or(0);
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *usage - cache));
}

const GroupFiles& FilesOf(const ControlGroup& group) {
  return group.version == 2 ? kVersion2 : kVersion1;
}

// The process's address space, excluding what the allocator keeps for reuse.
int64_t AddressSpaceInUse() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE) - ReusableAddressSpace();
}

int64_t AddressSpaceLeft() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - AddressSpaceInUse());
}

}  // namespace

int64_t AvailableMemory(const std::string& root) {
  int64_t available = MachineHas(root, "MemAvailable:");
  for (const ControlGroup& group : ControlGroups("memory", root)) {
    available = std::min(available, GroupAllows(group.directory, FilesOf(group)));
  }
  return std::min(available, AddressSpaceLeft());
}

int64_t MemoryLimit(const std::string& root) {
  int64_t total = MachineHas(root, "MemTotal:");
  for (const ControlGroup& group : ControlGroups("memory", root)) {
    const std::optional<int64_t> limit = ReadNumber(group.directory / FilesOf(group).limit);
    total = std::min(total, limit.value_or(kUnlimited));
  }
  return total;
}

int64_t TotalMemory(const std::string& root) {
  return std::min(MemoryLimit(root), AddressSpaceLeft());
}

int64_t AnonymousMemory() { return ReadField("/proc/self/status", "RssAnon:").value_or(0) * 1024; }

}  // namespace colcast
