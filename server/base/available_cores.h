// The number of threads that can run at the same time.
#ifndef COLCAST_SERVER_BASE_AVAILABLE_CORES_H_
#define COLCAST_SERVER_BASE_AVAILABLE_CORES_H_

#include <string>

namespace colcast {

// The number of cores on which the process may run (taskset, a cpuset) or, if lower, its control
// groups' CPU quota rounded up (docker run --cpus, a pod's limit). At least 1. `root` contains
// /proc and /sys/fs/cgroup.
int AvailableCores(const std::string& root = "");

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_AVAILABLE_CORES_H_
