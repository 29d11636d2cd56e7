// Logs one line per message to standard error: time, severity and text, as plain text or a JSON
// object.
#ifndef COLCAST_SERVER_BASE_LOG_H_
#define COLCAST_SERVER_BASE_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace colcast {

enum class LogFormat { kText, kJson };

// Applies to all later lines; the default is plain text.
void SetLogFormat(LogFormat format);

// Starts a thread that writes all later lines. Lines that do not fit into its queue, or cannot be
// written, are lost and counted, so that a reader that stops reading never delays the server.
// Without this thread, each caller writes its own lines.
void StartLogWriter();

// Waits, for at most a second, until all lines so far are written. Call before the process ends.
void FlushLog();

// What a message is about. In JSON these are separate fields; the text must contain them as well.
struct LogFields {
  std::string model;  // empty for no model
  std::optional<int64_t> version;
};

using LogSink = void (*)(const char* severity, std::string_view message, const LogFields& fields);

// Writes a line; bypasses SetLogSink().
void WriteLog(const char* severity, std::string_view message, const LogFields& fields);

// Redirects LogInfo(), LogWarning() and LogError(): a library with its own copy of this code passes
// its lines to the executable's WriteLog().
void SetLogSink(LogSink sink);

void LogInfo(std::string_view message, const LogFields& fields = {});
void LogWarning(std::string_view message, const LogFields& fields = {});
void LogError(std::string_view message, const LogFields& fields = {});

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_LOG_H_
