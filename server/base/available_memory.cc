#include "server/base/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "server/base/allocator_state.h"
#include "server/base/control_groups.h"

namespace colcast {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The number in a file with nothing else. "max", in version 2, counts as none.
std::optional<int64_t> ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The number after `key` in a file of lines "key number".
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

// File names in the two versions of control groups.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* cache;  // field of memory.stat: page cache that can be dropped
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

// Address space of the process, without what the allocator keeps for reuse.
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

int64_t TotalMemory(const std::string& root) {
  int64_t total = MachineHas(root, "MemTotal:");
  for (const ControlGroup& group : ControlGroups("memory", root)) {
    const std::optional<int64_t> limit = ReadNumber(group.directory / FilesOf(group).limit);
    total = std::min(total, limit.value_or(kUnlimited));
  }
  return std::min(total, AddressSpaceLeft());
}

}  // namespace colcast
