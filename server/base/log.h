// One line a message on standard error: time, severity, text; as text or as a JSON object.
#ifndef COLCAST_SERVER_BASE_LOG_H_
#define COLCAST_SERVER_BASE_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace colcast {

enum class LogFormat { kText, kJson };

// For all lines from now on; text before.
void SetLogFormat(LogFormat format);

// From now on a thread of its own writes the lines. Those that do not fit into its queue are
// dropped and counted: a reader that stops or ends never delays who logs. Before that, lines are
// written by those who log.
void StartLogWriter();

// Waits until all lines so far are written, but not long. For the end of the process.
void FlushLog();

// What a message is about. JSON has it in fields of its own; in text the message says it anyway.
struct LogFields {
  std::string model;  // empty: no model
  std::optional<int64_t> version;
};

using LogSink = void (*)(const char* severity, std::string_view message, const LogFields& fields);

// Writes a line as the functions below do.
void WriteLog(const char* severity, std::string_view message, const LogFields& fields);

// For a library that has a copy of this code: its lines go to the executable's WriteLog().
void SetLogSink(LogSink sink);

void LogInfo(std::string_view message, const LogFields& fields = {});
void LogWarning(std::string_view message, const LogFields& fields = {});
void LogError(std::string_view message, const LogFields& fields = {});

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_LOG_H_
