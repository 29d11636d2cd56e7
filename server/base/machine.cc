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
#include <string_view>
#include <thread>
#include <vector>

// Defined by jemalloc; null in tests, which use a different allocator.
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

// The directories of the control groups that limit this process: its container's or service's, and
// all parent groups. Directories may not exist. In a container, the mount point may itself be the
// group, so it is included.
std::vector<fs::path> ControlGroups(const std::string& root) {
  std::vector<fs::path> found = {root + "/sys/fs/cgroup"};
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    constexpr std::string_view kVersion2 = "0::";  // begins the line of version 2
    if (line.compare(0, kVersion2.size(), kVersion2) != 0) continue;
    for (const fs::path& part : fs::path(line.substr(kVersion2.size())).relative_path()) {
      found.push_back(found.back() / part);
    }
  }
  return found;
}

}  // namespace

namespace {

int AllowedCores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  // The call fails if the machine has more cores than a cpu_set_t can hold.
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Converts a CPU quota, in microseconds per period, to cores. Without a quota, the file says "max".
int QuotaOf(const fs::path& group, int cores) {
  double quota = 0;
  double period = 0;
  std::ifstream(group / "cpu.max") >> quota >> period;
  if (quota <= 0 || period <= 0) return cores;
  return static_cast<int>(std::min<double>(cores, std::ceil(quota / period)));
}

}  // namespace

int AvailableCores(const std::string& root) {
  int cores = AllowedCores();
  for (const fs::path& group : ControlGroups(root)) cores = QuotaOf(group, cores);
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

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Reads a file that contains one number. Returns nullopt for "max".
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

int64_t GroupAllows(const fs::path& group) {
  const std::optional<int64_t> limit = ReadNumber(group / "memory.max");
  const std::optional<int64_t> usage = ReadNumber(group / "memory.current");
  if (!limit || !usage) return kUnlimited;
  // The kernel can drop inactive page cache, so it does not count as used.
  const int64_t cache = ReadField(group / "memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *usage - cache));
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
  for (const fs::path& group : ControlGroups(root)) {
    available = std::min(available, GroupAllows(group));
  }
  return std::min(available, AddressSpaceLeft());
}

int64_t MemoryLimit(const std::string& root) {
  int64_t total = MachineHas(root, "MemTotal:");
  for (const fs::path& group : ControlGroups(root)) {
    total = std::min(total, ReadNumber(group / "memory.max").value_or(kUnlimited));
  }
  return total;
}

int64_t TotalMemory(const std::string& root) {
  return std::min(MemoryLimit(root), AddressSpaceLeft());
}

int64_t AnonymousMemory() { return ReadField("/proc/self/status", "RssAnon:").value_or(0) * 1024; }

}  // namespace colcast
