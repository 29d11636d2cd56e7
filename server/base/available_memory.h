// The memory that this process may have.
#ifndef COLCAST_SERVER_BASE_AVAILABLE_MEMORY_H_
#define COLCAST_SERVER_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace colcast {

// Bytes this process can still fill: what the machine has left (MemAvailable) or, if that is less,
// what the control groups (version 2 or 1) the process runs in allow it, page cache not counted, or
// its address space (ulimit -v). The largest number if nothing limits it. `root` is where /proc and
// /sys/fs/cgroup are.
int64_t AvailableMemory(const std::string& root = "");

// The same of all that the machine or the control groups have, whoever uses it; of the address
// space, what is left.
int64_t TotalMemory(const std::string& root = "");

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_AVAILABLE_MEMORY_H_
