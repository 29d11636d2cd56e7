#include "server/base/log.h"

#include <absl/base/thread_annotations.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>

#include "server/base/figures.h"
#include "server/base/text.h"
#include "server/base/thread.h"

namespace colcast {
namespace {

std::atomic<LogFormat> log_format{LogFormat::kText};

// The current UTC time with milliseconds. `date_format` is a strftime() format.
std::string Now(const char* date_format) {
  timeval now;
  gettimeofday(&now, nullptr);
  tm utc;
  gmtime_r(&now.tv_sec, &utc);
  char date[64];
  const size_t length = strftime(date, sizeof(date), date_format, &utc);
  char milliseconds[8];
  std::snprintf(milliseconds, sizeof(milliseconds), ".%03dZ", static_cast<int>(now.tv_usec / 1000));
  return std::string(date, length) + milliseconds;
}

// Appends `c`, escaped if it would break the line or control a terminal.
void AppendPrintable(char c, std::string* out) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte != 0x7f) {
    *out += c;
    return;
  }
  char escaped[8];
  std::snprintf(escaped, sizeof(escaped), "\\x%02x", byte);
  *out += escaped;
}

std::string Line(const char* severity, std::string_view message, const LogFields& fields) {
  if (log_format == LogFormat::kText) {
    std::string line = Now("%Y-%m-%d %H:%M:%S") + ' ' + severity + ' ';
    for (const char c : message) AppendPrintable(c, &line);
    return line + '\n';
  }
  std::string line = "{\"time\":\"" + Now("%Y-%m-%dT%H:%M:%S") + "\",\"severity\":\"" + severity +
                     "\",\"message\":" + JsonQuoted(message);
  if (!fields.model.empty()) line += ",\"model\":" + JsonQuoted(fields.model);
  if (fields.version) line += ",\"version\":" + std::to_string(*fields.version);
  return line + "}\n";
}

// Returns the number of lines that could not be written because the reader is gone, or is slow
// while standard error is nonblocking.
int64_t WriteAll(std::string_view lines) {
  while (!lines.empty()) {
    const ssize_t written = write(STDERR_FILENO, lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    lines.remove_prefix(static_cast<size_t>(written));
  }
  return std::count(lines.begin(), lines.end(), '\n');
}

// Queues lines and writes them on its own thread.
class Writer {
 public:
  // Returns false if the thread has not been started.
  bool Add(std::string_view line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!running_) return false;
    if (lines_.size() + line.size() > kMostBytes) {
      ++figures.lost_log_lines;
    } else {
      lines_ += line;
    }
    changed_.notify_all();
    return true;
  }

  void Start() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (running_) return;
    Thread thread;
    running_ = StartThread(
                   "the log", [this] { Run(); }, &thread)
                   .ok();
    if (running_) thread.detach();
  }

  void Flush() {
    constexpr std::chrono::seconds kLongest(1);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kLongest, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return lines_.empty() && !writes_;
    });
  }

 private:
  static constexpr size_t kMostBytes = 1 << 20;

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock,
                    [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !lines_.empty(); });
      const std::string lines = std::exchange(lines_, {});
      writes_ = true;
      lock.unlock();
      figures.lost_log_lines += WriteAll(lines);
      lock.lock();
      writes_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool writes_ ABSL_GUARDED_BY(mutex_) = false;
  std::string lines_ ABSL_GUARDED_BY(mutex_);
};

// Never destroyed, because its thread runs until the process ends.
Writer& LogWriter() {
  static Writer* const writer = new Writer;
  return *writer;
}

std::atomic<LogSink> sink{WriteLog};

}  // namespace

void SetLogFormat(LogFormat format) { log_format = format; }

void StartLogWriter() { LogWriter().Start(); }

void FlushLog() { LogWriter().Flush(); }

void SetLogSink(LogSink other) { sink = other; }

void WriteLog(const char* severity, std::string_view message, const LogFields& fields) {
  const std::string line = Line(severity, message, fields);
  if (!LogWriter().Add(line)) figures.lost_log_lines += WriteAll(line);
}

void LogInfo(std::string_view message, const LogFields& fields) {
  sink.load()("INFO", message, fields);
}

void LogWarning(std::string_view message, const LogFields& fields) {
  sink.load()("WARNING", message, fields);
}

void LogError(std::string_view message, const LogFields& fields) {
  sink.load()("ERROR", message, fields);
}

}  // namespace colcast
