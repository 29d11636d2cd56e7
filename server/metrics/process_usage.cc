#include "server/metrics/process_usage.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "server/base/machine.h"

namespace colcast::metrics {
namespace {

double Seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int64_t ResidentBytes() {
  int64_t total_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t OpenFds() {
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  if (error) return 0;
  // Not counting the descriptor that reads the directory.
  return std::distance(begin(fds), end(fds)) - 1;
}

int64_t MaxFds() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int64_t>(limit.rlim_cur);
}

// Reads field 22 of /proc/self/stat (proc(5)): the clock ticks from the machine's start to the
// process's start.
double StartTimeSeconds() {
  std::string stat;
  std::ifstream file("/proc/self/stat");
  std::getline(file, stat);
  // The second field, the program's name in parentheses, may contain spaces.
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  const double machine_start = Seconds(CLOCK_REALTIME) - Seconds(CLOCK_BOOTTIME);
  return machine_start + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessUsage ReadProcessUsage() {
  // Computed once, because the system clock may be changed later.
  static const double start_time_seconds = StartTimeSeconds();
  ProcessUsage usage;
  usage.cpu_seconds = Seconds(CLOCK_PROCESS_CPUTIME_ID);
  usage.resident_bytes = ResidentBytes();
  usage.anonymous_bytes = AnonymousMemory();
  usage.memory_limit = MemoryLimit();
  usage.open_fds = OpenFds();
  usage.max_fds = MaxFds();
  usage.start_time_seconds = start_time_seconds;
  return usage;
}

}  // namespace colcast::metrics
