#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "server/base/machine.h"
#include "server/flags/rows.h"
#include "server/protos/monitoring_config.pb.h"
#include "server/protos/text_proto.h"

namespace colcast::flags {

using std::chrono::milliseconds;
using Seconds = std::chrono::seconds;

void AddServerRows(Given* given, ServerOptions* options, Table* table) {
  rpc::GrpcServer::Options& grpc = options->grpc;
  table->Begin(kListening);
  table->Add("port", &grpc.port, "TCP port for gRPC; 0 means any free port, which is logged",
             {0, 65535});
  table->Add("host", &grpc.host, "address to listen on");
  table->Add("grpc_socket_path", &grpc.socket_path,
             "unix socket to listen on for gRPC, in addition to the port");
  table->Add("grpc_channel_arguments", &given->grpc_channel_arguments,
             "comma-separated gRPC channel arguments, such as grpc.max_connection_age_ms=2000");
  table->Begin(kLimits);
  table->Add("max_request_bytes", &grpc.max_request_bytes,
             "maximum bytes of a request, over gRPC and HTTP, before and after decompression", {1});
  table->Add("max_unread_response_bytes", &grpc.max_unread_response_bytes,
             "maximum bytes of unread gRPC and REST answers per client host; all hosts together "
             "may have twice as many. Beyond that, requests are answered RESOURCE_EXHAUSTED or 429",
             {1});
  using From = rpc::Reloads::From;
  table->Begin(kListening);
  table->AddChoice<From>(
      "model_service", &grpc.reloads.from,
      "who may change what is served with ModelService.HandleReloadConfigRequest: on (any client), "
      "local (clients on this machine), off (no client)",
      {{"on", From::kAnywhere}, {"local", From::kThisMachine}, {"off", From::kNowhere}});
  table->Add("enable_grpc_healthcheck_service", &grpc.health_service,
             "answer grpc.health.v1.Health");
  table->Add("ssl_config_file", &given->ssl_config_file,
             "tensorflow.serving.SSLConfig in text form: key and certificate in PEM for TLS on "
             "every endpoint, and whether clients need certificates");

  table->Add(
      "rest_api_port", &given->rest_api_port,
      "TCP port for HTTP: REST, the metrics and the status page; 0 turns it off, -1 means any "
      "free port, which is logged",
      {-1, 65535});
  table->AddTime<milliseconds>("rest_api_timeout_in_ms", &options->model_api.timeout,
                               "how long a REST request may wait for a worker; 0 means forever",
                               {0});
  table->Add("rest_api_enable_cors_support", &options->model_api.cors,
             "let web pages of any origin use the REST API");
  table->Begin(kLimits);
  table->Add("max_rest_bytes", &options->max_rest_bytes,
             "maximum bytes of all REST bodies, the columns read from them, and decompressed gRPC "
             "messages together; a request without room is answered 429",
             {1});
  table->Begin(kOperation);
  table->Add("monitoring_config_file", &given->monitoring_config_file,
             "tensorflow.serving.MonitoringConfig in text form: whether the REST port serves "
             "metrics for Prometheus, and at which path");

  table->Begin(kCallers);
  table->Add("caller_header", &options->caller_header,
             "the metadata key and HTTP header that names the caller; callers take turns");

  table->Begin(kOperation);
  table->Add("trace_endpoint", &given->trace_endpoint,
             "where spans of requests are sent: http://HOST:4318/v1/traces of a collector that "
             "accepts OTLP over HTTP. Empty: $OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces if that is "
             "set, otherwise no tracing");
  table->Add(
      "trace_sampling_ratio", &given->tracing.sampling_ratio,
      "share of requests without a traceparent that are traced; for others the traceparent decides",
      {0, 1});

  table->AddChoice<LogFormat>("log_format", &options->log_format,
                              "text, or json with one object per line",
                              {{"text", LogFormat::kText}, {"json", LogFormat::kJson}});
  table->AddTime<Seconds>("drain_seconds", &options->drain,
                          "how long to keep answering after SIGTERM, with health NOT_SERVING, so "
                          "that load balancers notice first",
                          {0, 86400});
  table->AddTime<Seconds>("drain_timeout_seconds", &options->drain_timeout,
                          "how long requests in flight may then take before they are cut off",
                          {0, 86400});
  table->Add("request_log_max_file_bytes", &options->request_logs.max_file_bytes,
             "size at which a request log (a model's logging_config) continues in a new file", {1});
  table->Add("request_log_directory", &grpc.reloads.logs.directory,
             "the folder below which request logs are written. Without it, --model_config_file may "
             "name any absolute path, and a reload over the network cannot turn a log on");
}

namespace {

// Concurrent calls per connection. Further calls wait in the client, where they cost this server
// nothing if their deadline passes.
uint32_t MaxConcurrentStreams() {
  constexpr int kLeast = 100;  // the minimum that RFC 9113 recommends
  constexpr int kPerCore = 16;
  return static_cast<uint32_t>(std::max(kLeast, kPerCore * AvailableCores()));
}

// Returns false for an unknown name.
bool SetArgument(const std::string& name, int64_t value, http2::ConnectionOptions* options) {
  const std::pair<const char*, std::chrono::milliseconds*> times[] = {
      {"grpc.keepalive_time_ms", &options->keepalive_time},
      {"grpc.keepalive_timeout_ms", &options->keepalive_timeout},
      {"grpc.max_connection_idle_ms", &options->max_idle},
      {"grpc.max_connection_age_ms", &options->max_age},
      {"grpc.max_connection_age_grace_ms", &options->max_age_grace},
      {"grpc.http2.min_ping_interval_without_data_ms", &options->min_ping_interval},
      {"grpc.http2.min_recv_ping_interval_without_data_ms", &options->min_ping_interval},
  };
  for (const auto& [known, time] : times) {
    if (name != known) continue;
    *time = std::chrono::milliseconds(value);
    return true;
  }
  const std::pair<const char*, uint32_t*> numbers[] = {
      {"grpc.max_concurrent_streams", &options->max_concurrent_streams},
      {"grpc.max_metadata_size", &options->max_header_bytes},
  };
  for (const auto& [known, number] : numbers) {
    if (name != known) continue;
    *number = static_cast<uint32_t>(value);
    return true;
  }
  return false;
}

// If an argument is repeated, its last value counts.
Status ReadChannelArguments(const Given& given, ServerOptions* options) {
  constexpr int64_t kMost = INT32_MAX;  // the range of gRPC's arguments
  http2::ConnectionOptions* const connections = &options->grpc.connections;
  connections->max_concurrent_streams = MaxConcurrentStreams();
  for (const std::string& argument : given.grpc_channel_arguments) {
    if (argument.empty()) continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const auto& [name, text] = parts;
    if (name.empty() || text.empty()) {
      return InvalidArgument("--grpc_channel_arguments: \"", argument, "\" is not NAME=VALUE");
    }
    int64_t value = 0;
    // No call could be made over a connection without streams.
    const int64_t least = name == "grpc.max_concurrent_streams" ? 1 : 0;
    const bool is_valid = absl::SimpleAtoi(text, &value) && value >= least && value <= kMost;
    if (!is_valid || !SetArgument(name, value, connections)) {
      options->warnings.push_back("--grpc_channel_arguments: " + argument + " has no effect");
    }
  }
  return OkStatus();
}

Status ReadTls(const Given& given, std::optional<net::TlsConfig>* tls) {
  if (given.ssl_config_file.empty()) return OkStatus();
  return OfFlag("ssl_config_file", net::ReadTlsConfig(given.ssl_config_file, &tls->emplace()));
}

// Sets *path to the path of the Prometheus page; empty for none.
Status ReadMetricsPath(const Given& given, std::string* path) {
  const std::string& file = given.monitoring_config_file;
  if (file.empty()) return OkStatus();
  tensorflow::serving::MonitoringConfig config;
  Status status = ReadTextProto(file, &config);
  if (!status.ok()) return OfFlag("monitoring_config_file", std::move(status));
  const tensorflow::serving::PrometheusConfig& prometheus = config.prometheus_config();
  if (!prometheus.enable()) return OkStatus();
  *path = prometheus.path().empty() ? "/monitoring/prometheus/metrics" : prometheus.path();
  if (path->front() == '/' && path->size() > 1) return OkStatus();
  return InvalidArgument("--monitoring_config_file: ", file, ": path \"", *path,
                         "\" must begin with a / and must not be the status page's");
}

void ReadHttp(const Given& given, ServerOptions* options) {
  options->model_api.max_body_bytes = options->grpc.max_request_bytes;
  if (given.rest_api_port == 0) return;
  http::HttpServer::Options& http = options->http.emplace(given.http);
  http.host = options->grpc.host;
  http.port = std::max(0, given.rest_api_port);
  http.max_body_bytes = options->grpc.max_request_bytes;
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

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Uses OpenTelemetry's environment variable if the flag is not given.
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
  return OfFlag("trace_endpoint", tracing::ParseEndpoint(url, &tracer.endpoint));
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
  if (status.ok()) status = ReadChannelArguments(given, options);
  if (status.ok()) status = ReadTls(given, &options->tls);
  if (status.ok()) status = ReadMetricsPath(given, &options->metrics_path);
  if (status.ok()) status = CheckCallerHeader(options->caller_header);
  return status.ok() ? ReadTracing(given, &options->tracing) : status;
}

}  // namespace colcast::flags
