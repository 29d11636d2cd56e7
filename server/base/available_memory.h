// The memory that this process may use.
#ifndef COLCAST_SERVER_BASE_AVAILABLE_MEMORY_H_
#define COLCAST_SERVER_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace colcast {

// The bytes that this process can still allocate: what the machine has left (MemAvailable) or, if
// lower, what its control groups (version 2 or 1) still allow, not counting page cache, or what its
// address space (ulimit -v) allows. The largest number if there is no limit. `root` contains /proc
// and /sys/fs/cgroup.
int64_t AvailableMemory(const std::string& root = "");

// The total of machine and control groups, including used memory; for the address space, what is
// left.
int64_t TotalMemory(const std::string& root = "");

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_AVAILABLE_MEMORY_H_
