#include <absl/flags/flag.h>
#include <absl/strings/str_split.h>

#include <cstdint>
#include <string>
#include <utility>

#include "server/flags/parts.h"
#include "server/flags/range.h"

ABSL_FLAG(int32_t, port, 8500, "TCP port for gRPC; 0 takes any free one and logs which");
ABSL_FLAG(std::string, host, "0.0.0.0", "address to listen on");
ABSL_FLAG(std::string, grpc_socket_path, "", "unix socket to listen on for gRPC, beside the port");
ABSL_FLAG(std::string, grpc_channel_arguments, "",
          "comma-separated settings of gRPC, such as grpc.max_connection_age_ms=2000");
ABSL_FLAG(int32_t, max_request_bytes, 256 << 20,
          "most bytes of a request, over gRPC and HTTP, and after it was decompressed");
ABSL_FLAG(
    int64_t, max_unread_response_bytes, 32 << 20,
    "most bytes of gRPC answers that the clients of one host may leave unread; while there are "
    "more, their requests are answered RESOURCE_EXHAUSTED");
ABSL_FLAG(std::string, model_service, "on",
          "who may change what is served with ModelService.HandleReloadConfigRequest: on, everyone "
          "who reaches the server; local, clients on this machine; off, nobody");
ABSL_FLAG(bool, enable_grpc_healthcheck_service, true, "answer grpc.health.v1.Health");

ABSL_FLAG(std::string, ssl_config_file, "",
          "tensorflow.serving.SSLConfig in text form: key and certificate in PEM for TLS on every "
          "endpoint, and whether clients need certificates");

namespace colcast::flags {
namespace {

Status ReadChannelArguments(rpc::GrpcServer::Options* options) {
  const std::string text = absl::GetFlag(FLAGS_grpc_channel_arguments);
  for (const auto& argument : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.second.empty()) {
      return InvalidArgument("--grpc_channel_arguments: \"", argument, "\" is not NAME=VALUE");
    }
    options->channel_arguments.push_back(parts);
  }
  return OkStatus();
}

Status ReadReloads(rpc::Reloads::From* from) {
  using From = rpc::Reloads::From;
  const std::string text = absl::GetFlag(FLAGS_model_service);
  for (const auto& [name, value] : {std::pair<const char*, From>("on", From::kAnywhere),
                                    {"local", From::kThisMachine},
                                    {"off", From::kNowhere}}) {
    if (text != name) continue;
    *from = value;
    return OkStatus();
  }
  return InvalidArgument("--model_service: expected on, local or off, got \"", text, "\"");
}

}  // namespace

Status ReadGrpcFlags(rpc::GrpcServer::Options* options) {
  options->host = absl::GetFlag(FLAGS_host);
  options->port = absl::GetFlag(FLAGS_port);
  options->socket_path = absl::GetFlag(FLAGS_grpc_socket_path);
  options->max_request_bytes = absl::GetFlag(FLAGS_max_request_bytes);
  options->max_unread_response_bytes =
      static_cast<size_t>(absl::GetFlag(FLAGS_max_unread_response_bytes));
  options->health_service = absl::GetFlag(FLAGS_enable_grpc_healthcheck_service);
  Status status = CheckRanges(
      {{FLAGS_port, 0, 65535}, {FLAGS_max_request_bytes, 1}, {FLAGS_max_unread_response_bytes, 1}});
  if (status.ok()) status = ReadReloads(&options->reloads.from);
  return status.ok() ? ReadChannelArguments(options) : status;
}

Status ReadTlsFlags(std::optional<TlsConfig>* tls) {
  const std::string path = absl::GetFlag(FLAGS_ssl_config_file);
  if (path.empty()) return OkStatus();
  Status status = ReadTlsConfig(path, &tls->emplace());
  if (!status.ok()) status.message = "--ssl_config_file: " + status.message;
  return status;
}

}  // namespace colcast::flags
