// The cores and memory that this process may use.
#ifndef COLCAST_SERVER_BASE_MACHINE_H_
#define COLCAST_SERVER_BASE_MACHINE_H_

#include <cstdint>
#include <string>

namespace colcast {

// The number of cores on which the process may run (taskset, a cpuset) or, if lower, its control
// groups' CPU quota, rounded up (docker run --cpus, a pod's limit). At least 1. `root` contains
// /proc and /sys/fs/cgroup.
int AvailableCores(const std::string& root = "");

// Measures, to about 64 KiB, the peak memory of the calling thread's allocations since
// construction. At most one instance per thread at a time.
class AllocationPeak {
 public:
  AllocationPeak();
  int64_t bytes() const;  // 0 without jemalloc (server/allocator.cc)
};

// Freed address space that the allocator keeps for reuse, in bytes.
int64_t ReusableAddressSpace();

// The number of bytes that this process can still allocate: the least of the machine's available
// memory (MemAvailable), what its control groups (version 2) still allow, not counting page cache,
// and the remaining address space (ulimit -v). The largest int64_t if there is no limit. `root`
// contains /proc and /sys/fs/cgroup.
int64_t AvailableMemory(const std::string& root = "");

// The machine's memory or, if less, the limit of its control groups.
int64_t MemoryLimit(const std::string& root = "");

// MemoryLimit() or, if less, the remaining address space (ulimit -v).
int64_t TotalMemory(const std::string& root = "");

// The process's resident memory that is not backed by files; 0 if unknown.
int64_t AnonymousMemory();

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_MACHINE_H_
