#include <cstdint>
#include <string>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(int32_t, port, 8500, "TCP port for gRPC; 0 takes any free one and logs which");
ABSL_FLAG(std::string, host, "0.0.0.0", "address to listen on");

namespace colcast::flags {

Status ReadGrpcFlags(rpc::GrpcServer::Options* options) {
  options->host = absl::GetFlag(FLAGS_host);
  options->port = absl::GetFlag(FLAGS_port);
  return CheckRanges({{FLAGS_port, 0, 65535}});
}

}  // namespace colcast::flags
