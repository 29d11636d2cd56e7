#include <absl/strings/match.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "server/base/text_proto.h"
#include "server/flags/rows.h"
#include "server/protos/monitoring_config.pb.h"

namespace colcast::flags {
namespace {

Status ReadChannelArguments(const Given& given, rpc::GrpcServer::Options* options) {
  for (const std::string& argument : given.grpc_channel_arguments) {
    if (argument.empty()) continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.second.empty()) {
      return InvalidArgument("--grpc_channel_arguments: \"", argument, "\" is not NAME=VALUE");
    }
    options->channel_arguments.push_back(parts);
  }
  return OkStatus();
}

Status ReadTls(const Given& given, std::optional<TlsConfig>* tls) {
  if (given.ssl_config_file.empty()) return OkStatus();
  Status status = ReadTlsConfig(given.ssl_config_file, &tls->emplace());
  if (!status.ok()) status.message = "--ssl_config_file: " + status.message;
  return status;
}

// Sets *path to the path of the page for Prometheus; empty for none.
Status ReadMetricsPath(const Given& given, std::string* path) {
  const std::string& file = given.monitoring_config_file;
  if (file.empty()) return OkStatus();
  tensorflow::serving::MonitoringConfig config;
  if (Status status = ReadTextProto(file, &config); !status.ok()) {
    status.message = "--monitoring_config_file: " + status.message;
    return status;
  }
  const tensorflow::serving::PrometheusConfig& prometheus = config.prometheus_config();
  if (!prometheus.enable()) return OkStatus();
  *path = prometheus.path().empty() ? "/monitoring/prometheus/metrics" : prometheus.path();
  if (path->front() == '/' && path->size() > 1) return OkStatus();
  return InvalidArgument("--monitoring_config_file: ", file, ": path \"", *path,
                         "\" has to begin with a / and cannot be the status page's");
}

void ReadHttp(const Given& given, ServerOptions* options) {
  options->model_api.max_body_bytes = options->grpc.max_request_bytes;
  if (given.rest_api_port == 0) return;
  http::HttpServer::Options& http = options->http.emplace(given.http);
  http.host = options->grpc.host;
  http.port = std::max(0, given.rest_api_port);
  http.listens = given.rest_api_port != options->grpc.port;
  http.max_body_bytes = options->grpc.max_request_bytes;
}

Status ReadOffload(const Given& given, rpc::GrpcServer::Options* options) {
  if (given.offload_target.empty()) return OkStatus();
  options->offload = given.offload;
  Status status = http2::Target::Parse(given.offload_target, &options->offload->target);
  if (!status.ok()) status.message = "--offload_target: " + status.message;
  return status;
}

Status CheckCallerHeader(const std::string& name) {
  constexpr const char* kReserved[] = {"te", "user-agent", "accept-encoding", "content-type"};
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  const bool is_reserved =
      absl::StartsWith(name, "grpc-") ||
      std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
  if (is_name && !is_reserved && !absl::EndsWith(name, "-bin")) return OkStatus();
  return InvalidArgument("--caller_header: \"", name,
                         "\", expected a name in lower case, such as x-colcast-caller, that is not "
                         "gRPC's and does not end in -bin");
}

Status ReadCallers(const Given& given, ServerOptions* options) {
  const callers::NameSource& names = given.callers;
  if (names.certificate && !names.header.empty()) {
    return InvalidArgument("--caller_header and --caller_certificate: expected one of them");
  }
  const std::optional<TlsConfig>& tls = options->grpc.tls;
  if (names.certificate && (!tls || tls->client_authorities.empty())) {
    return InvalidArgument(
        "--caller_certificate needs an --ssl_config_file with client_verify: true");
  }
  if (names.certificate || !names.header.empty()) options->callers = names;
  return CheckCallerHeader(names.header);
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Without the flag, OpenTelemetry's environment variable applies.
Status ReadTracing(const Given& given, std::optional<tracing::Tracer::Options>* options) {
  std::string url = given.trace_endpoint;
  if (url.empty()) {
    url = Environment("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (!url.empty()) url += url.back() == '/' ? "v1/traces" : "/v1/traces";
  }
  if (url.empty()) {
    const double ratio = given.tracing.sampling_ratio;
    if (ratio == 0) return OkStatus();
    return InvalidArgument("--trace_sampling_ratio=", ratio, " needs --trace_endpoint");
  }
  tracing::Tracer::Options& tracer = options->emplace(given.tracing);
  const std::string name = Environment("OTEL_SERVICE_NAME");
  if (!name.empty()) tracer.service_name = name;
  Status status = tracing::ParseEndpoint(url, &tracer.endpoint);
  if (!status.ok()) status.message = "--trace_endpoint: " + status.message;
  return status;
}

Status CheckLogDirectory(const std::string& directory) {
  if (directory.empty() || directory.front() == '/') return OkStatus();
  return InvalidArgument("--request_log_directory is \"", directory,
                         "\", expected an absolute path");
}

}  // namespace

Status FinishServer(const Given& given, ServerOptions* options) {
  ReadHttp(given, options);
  Status status = CheckLogDirectory(options->grpc.reloads.logs.directory);
  if (status.ok()) status = ReadChannelArguments(given, &options->grpc);
  if (status.ok()) status = ReadTls(given, &options->grpc.tls);
  if (status.ok()) status = ReadMetricsPath(given, &options->metrics_path);
  if (status.ok()) status = ReadOffload(given, &options->grpc);
  if (status.ok()) status = ReadCallers(given, options);
  return status.ok() ? ReadTracing(given, &options->tracing) : status;
}

}  // namespace colcast::flags
