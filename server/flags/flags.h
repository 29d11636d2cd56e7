// Parses the command line. Flags that tensorflow_model_server also has keep its names. Each flag is
// a row in flags.cc if it has no effect here, and otherwise in a *_flags.cc file, which also
// validates the values and fills in the Options structs.
#ifndef COLCAST_SERVER_FLAGS_FLAGS_H_
#define COLCAST_SERVER_FLAGS_FLAGS_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "server/base/log.h"
#include "server/engine/engine.h"
#include "server/http1/server.h"
#include "server/inference/servable.h"
#include "server/items/item_tables.h"
#include "server/models/model_manager.h"
#include "server/request_log/request_logs.h"
#include "server/rest/model_api.h"
#include "server/rpc/grpc_server.h"
#include "server/scheduling/worker_pool.h"
#include "server/tracing/tracer.h"

namespace colcast {

// Options for loading each version in a separate process first: some crash or hang TensorFlow.
struct LoadCheckOptions {
  bool enabled = true;
  std::chrono::seconds timeout{1800};
  std::string directory;  // the version to load; set only in that process
};

struct ServerOptions {
  engine::Options engine;
  std::vector<std::string> op_libraries;  // paths of libraries to load before the models
  models::ModelManager::Options models;
  std::vector<items::ItemTableConfig> item_tables;
  request_log::RequestLogs::Options request_logs;
  LoadCheckOptions load_check;
  scheduling::WorkerPool::Options workers;
  std::optional<net::TlsConfig> tls;
  rpc::GrpcServer::Options grpc;
  TensorEncoding encoding = TensorEncoding::kTypedFields;
  inference::CallOptions calls;
  std::optional<http::HttpServer::Options> http;
  http::ModelApiOptions model_api;
  size_t max_rest_bytes = size_t{2} << 30;
  std::optional<tracing::Tracer::Options> tracing;  // nullopt if tracing is off
  std::string caller_header;                        // empty if callers are not distinguished
  LogFormat log_format = LogFormat::kText;
  // How long requests are still accepted after the health status has become NOT_SERVING.
  std::chrono::milliseconds drain{0};
  // How long requests in flight may take after `drain`.
  std::chrono::milliseconds drain_timeout{30'000};
  std::string metrics_path;           // path of the Prometheus page; empty for none
  std::vector<std::string> warnings;  // about accepted flags that have no effect
};

// Reads the flags. Returns INVALID_ARGUMENT, naming the flag, its value and what was expected.
// Exits for --help, --version, and flags that cannot be parsed.
Status ParseFlags(int argc, char** argv, ServerOptions* options);

}  // namespace colcast

#endif  // COLCAST_SERVER_FLAGS_FLAGS_H_
