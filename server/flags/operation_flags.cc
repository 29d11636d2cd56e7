#include <cstdint>
#include <string>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(std::string, log_format, "text", "text, or json: one object per line");
ABSL_FLAG(double, drain_seconds, 0,
          "how long to go on answering after SIGTERM, with health NOT_SERVING, so that load "
          "balancers notice first");

ABSL_FLAG(double, drain_timeout_seconds, 30,
          "how long what is in flight may then take to end: what has not ended is cut and named in "
          "the log");

namespace colcast::flags {

namespace {

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace

Status ReadOperationFlags(LogFormat* log_format, std::chrono::milliseconds* drain,
                          std::chrono::milliseconds* drain_timeout) {
  const std::string format = absl::GetFlag(FLAGS_log_format);
  if (format != "text" && format != "json") {
    return InvalidArgument("--log_format=", format, ": expected text or json");
  }
  *log_format = format == "json" ? LogFormat::kJson : LogFormat::kText;
  *drain = Milliseconds(absl::GetFlag(FLAGS_drain_seconds));
  *drain_timeout = Milliseconds(absl::GetFlag(FLAGS_drain_timeout_seconds));
  return CheckRanges({{FLAGS_drain_seconds, 0, 86400}, {FLAGS_drain_timeout_seconds, 0, 86400}});
}

}  // namespace colcast::flags
