#include <cstdint>
#include <string>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(std::string, log_format, "text", "text, or json: one object a line");
ABSL_FLAG(double, drain_seconds, 0,
          "how long to go on answering after SIGTERM, with health NOT_SERVING, so that load "
          "balancers notice first");

namespace colcast::flags {

Status ReadOperationFlags(LogFormat* log_format, std::chrono::milliseconds* drain) {
  const std::string format = absl::GetFlag(FLAGS_log_format);
  if (format != "text" && format != "json") {
    return InvalidArgument("--log_format=", format, ": expected text or json");
  }
  *log_format = format == "json" ? LogFormat::kJson : LogFormat::kText;
  *drain =
      std::chrono::milliseconds(static_cast<int64_t>(absl::GetFlag(FLAGS_drain_seconds) * 1000));
  return CheckRanges({{FLAGS_drain_seconds, 0, 86400}});
}

}  // namespace colcast::flags
