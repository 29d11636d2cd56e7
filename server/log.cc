#include "server/log.h"

#include <sys/time.h>
#include <unistd.h>

#include <ctime>
#include <string>

namespace colcast {
namespace {

void Log(const char* severity, std::string_view message) {
  timeval now;
  gettimeofday(&now, nullptr);
  tm utc;
  gmtime_r(&now.tv_sec, &utc);
  char stamp[64];
  const size_t length = strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &utc);
  std::string line(stamp, length);
  line += '.' + std::to_string(1000000 + now.tv_usec).substr(1, 3) + "Z " + severity + ' ';
  line.append(message);
  line += '\n';
  // One write, so that lines of several threads do not mix. Where it fails there is nobody to tell.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void LogInfo(std::string_view message) { Log("INFO", message); }
void LogWarning(std::string_view message) { Log("WARNING", message); }
void LogError(std::string_view message) { Log("ERROR", message); }

}  // namespace colcast
