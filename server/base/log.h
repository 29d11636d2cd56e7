// Logs one line per message on standard error: time, severity and text, as plain text or as a JSON
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

// Starts a thread that writes the lines from now on. Lines that do not fit into its queue are
// dropped and counted, so that a stopped reader never delays logging. Before that, each caller
// writes its own lines.
void StartLogWriter();

// Waits briefly until all lines so far are written. Called at the end of the process.
void FlushLog();

// What a message is about. JSON shows it in fields of its own; the text must name it as well.
struct LogFields {
  std::string model;  // empty for no model
  std::optional<int64_t> version;
};

using LogSink = void (*)(const char* severity, std::string_view message, const LogFields& fields);

// Writes a line, like the functions below.
void WriteLog(const char* severity, std::string_view message, const LogFields& fields);

// Sends the lines of a library that has its own copy of this code to the executable's WriteLog().
void SetLogSink(LogSink sink);

void LogInfo(std::string_view message, const LogFields& fields = {});
void LogWarning(std::string_view message, const LogFields& fields = {});
void LogError(std::string_view message, const LogFields& fields = {});

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_LOG_H_
