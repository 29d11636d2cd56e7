// The resources of this process, as Linux counts them.
#ifndef COLCAST_SERVER_METRICS_PROCESS_USAGE_H_
#define COLCAST_SERVER_METRICS_PROCESS_USAGE_H_

#include <cstdint>

namespace colcast::metrics {

// 0 for what /proc does not have.
struct ProcessUsage {
  double cpu_seconds = 0;         // user and system time of all threads
  int64_t resident_bytes = 0;     // memory now
  int64_t open_fds = 0;           // file descriptors
  int64_t max_fds = 0;            // as many as it may open
  double start_time_seconds = 0;  // since 1970
};

ProcessUsage ReadProcessUsage();

}  // namespace colcast::metrics

#endif  // COLCAST_SERVER_METRICS_PROCESS_USAGE_H_
