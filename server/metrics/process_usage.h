// The resources of this process, as counted by Linux.
#ifndef COLCAST_SERVER_METRICS_PROCESS_USAGE_H_
#define COLCAST_SERVER_METRICS_PROCESS_USAGE_H_

#include <cstdint>

namespace colcast::metrics {

// Values missing from /proc are 0.
struct ProcessUsage {
  double cpu_seconds = 0;         // user and system time of all threads
  int64_t resident_bytes = 0;     // current memory
  int64_t anonymous_bytes = 0;    // part of it that is not backed by files
  int64_t memory_limit = 0;       // of the machine or, if less, the control groups
  int64_t open_fds = 0;           // open file descriptors
  int64_t max_fds = 0;            // limit for open file descriptors
  double start_time_seconds = 0;  // since the epoch
};

ProcessUsage ReadProcessUsage();

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_PROCESS_USAGE_H_
