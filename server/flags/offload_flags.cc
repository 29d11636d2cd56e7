#include <cstdint>
#include <string>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(std::string, offload_target, "",
          "HOST:PORT or unix:PATH of a server with the same models, on an accelerator, for large "
          "gRPC Predict requests; what it does not answer runs here");
ABSL_FLAG(int64_t, offload_rows, 1, "rows from which on a request is sent to --offload_target");
ABSL_FLAG(int32_t, offload_timeout_ms, 500,
          "how long --offload_target has for an answer; half of what the client's deadline leaves, "
          "if that is less");

namespace colcast::flags {

Status ReadOffloadFlags(std::optional<rpc::Offload::Options>* options) {
  rpc::Offload::Options read;
  read.rows = absl::GetFlag(FLAGS_offload_rows);
  read.timeout_ms = absl::GetFlag(FLAGS_offload_timeout_ms);
  if (const std::string target = absl::GetFlag(FLAGS_offload_target); !target.empty()) {
    if (Status status = http2::Target::Parse(target, &read.target); !status.ok()) {
      return InvalidArgument("--offload_target: ", status.message);
    }
    *options = read;
  }
  return CheckRanges({{FLAGS_offload_rows, 1}, {FLAGS_offload_timeout_ms, 1}});
}

}  // namespace colcast::flags
