// Writes metrics of this process's resources, read from /proc; a missing value becomes 0.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "server/base/figures.h"
#include "server/base/machine.h"
#include "server/metrics/exposition.h"

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

void WriteProcess(TextWriter* writer) {
  // Computed once, because the system clock may be changed later.
  static const double start_time = StartTimeSeconds();
  const auto write = [writer](const char* name, MetricType type, const char* help, auto value) {
    writer->Metric(name, type, help);
    writer->Sample({}, value);
  };
  constexpr MetricType kCounter = MetricType::kCounter;
  constexpr MetricType kGauge = MetricType::kGauge;
  write(":colcast:lost_log_lines_total", kCounter,
        "Log lines lost because their reader stopped reading or is gone.",
        figures.lost_log_lines.load());
  write(":colcast:connections_closed_for_room_total", kCounter,
        "Idle connections closed because connections or descriptors ran short.",
        figures.closed_for_room.load());
  write(":colcast:refused_certificates_total", kCounter,
        "Renewed certificates that were invalid, so that the old ones stayed in use.",
        figures.refused_certificates.load());
  write(":colcast:certificates_end_seconds", kGauge,
        "When the certificates in use expire, in seconds since 1970; 0 without TLS.",
        figures.certificates_end.load());
  write(":colcast:anonymous_memory_bytes", kGauge,
        "Resident memory without mapped files, which the kernel can drop.", AnonymousMemory());
  write(":colcast:memory_limit_bytes", kGauge,
        "Memory of the machine or, if less, the limit of the control groups.", MemoryLimit());
  write("process_cpu_seconds_total", kCounter, "User and system time of all threads.",
        Seconds(CLOCK_PROCESS_CPUTIME_ID));
  write("process_resident_memory_bytes", kGauge, "Resident memory.", ResidentBytes());
  write("process_open_fds", kGauge, "Open file descriptors.", OpenFds());
  write("process_max_fds", kGauge, "File descriptors that may be open.", MaxFds());
  write("process_start_time_seconds", kGauge, "When the process started, in seconds since 1970.",
        start_time);
}

}  // namespace colcast::metrics
