#include <absl/flags/declare.h>
#include <absl/flags/flag.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "server/base/text_proto.h"
#include "server/flags/parts.h"
#include "server/flags/range.h"
#include "server/protos/monitoring_config.pb.h"

ABSL_FLAG(int32_t, rest_api_port, 0,
          "TCP port for HTTP: REST, the metrics and the status page; 0: none; -1 takes any free "
          "one and logs which; --port's own: one port for both");
ABSL_FLAG(int32_t, rest_api_timeout_in_ms, 30000,
          "how long a REST request may wait for a worker; 0: for ever");
ABSL_FLAG(bool, rest_api_enable_cors_support, false,
          "let web pages of any origin use the REST API");

ABSL_FLAG(int64_t, max_rest_bytes, int64_t{2} << 30,
          "most bytes that the bodies of all REST requests, and the columns read from them, take "
          "together; a request that finds no room is answered 429");

ABSL_DECLARE_FLAG(std::string, host);
ABSL_DECLARE_FLAG(int32_t, port);
ABSL_DECLARE_FLAG(int32_t, max_request_bytes);

ABSL_FLAG(std::string, monitoring_config_file, "",
          "tensorflow.serving.MonitoringConfig in text form: whether and where on the REST port "
          "Prometheus finds the metrics");

namespace colcast::flags {
Status ReadRestFlags(std::optional<http::HttpServer::Options>* options,
                     http::ModelApiOptions* model_api) {
  const int port = absl::GetFlag(FLAGS_rest_api_port);
  if (port != 0) {
    http::HttpServer::Options& http = options->emplace();
    http.host = absl::GetFlag(FLAGS_host);
    http.port = std::max(0, port);
    http.listens = port != absl::GetFlag(FLAGS_port);
    http.max_body_bytes = absl::GetFlag(FLAGS_max_request_bytes);
    http.max_memory_bytes = static_cast<size_t>(absl::GetFlag(FLAGS_max_rest_bytes));
  }
  model_api->max_body_bytes = absl::GetFlag(FLAGS_max_request_bytes);
  model_api->timeout = std::chrono::milliseconds(absl::GetFlag(FLAGS_rest_api_timeout_in_ms));
  model_api->cors = absl::GetFlag(FLAGS_rest_api_enable_cors_support);
  return CheckRanges({{FLAGS_rest_api_port, -1, 65535},
                      {FLAGS_rest_api_timeout_in_ms, 0},
                      {FLAGS_max_rest_bytes, 1}});
}

Status ReadMonitoringFlags(std::string* metrics_path) {
  const std::string file = absl::GetFlag(FLAGS_monitoring_config_file);
  if (file.empty()) return OkStatus();
  tensorflow::serving::MonitoringConfig config;
  if (Status status = ReadTextProto(file, &config); !status.ok()) {
    status.message = "--monitoring_config_file: " + status.message;
    return status;
  }
  const tensorflow::serving::PrometheusConfig& prometheus = config.prometheus_config();
  if (!prometheus.enable()) return OkStatus();
  *metrics_path = prometheus.path().empty() ? "/monitoring/prometheus/metrics" : prometheus.path();
  if (metrics_path->front() == '/' && metrics_path->size() > 1) return OkStatus();
  return InvalidArgument("--monitoring_config_file: ", file, ": path \"", *metrics_path,
                         "\" has to begin with a / and cannot be the status page's");
}

}  // namespace colcast::flags
