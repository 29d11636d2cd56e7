// What each file of flags makes of them. Called after parsing, in any order; INVALID_ARGUMENT names
// the flag.
#ifndef COLCAST_SERVER_FLAGS_PARTS_H_
#define COLCAST_SERVER_FLAGS_PARTS_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "server/base/log.h"
#include "server/base/tls_config.h"
#include "server/flags/flags.h"

namespace colcast::flags {

// After ReadRequestFlags. `num_workers_given`: --num_workers wins over the file's
// num_batch_threads.
Status ReadBatchingFlags(scheduling::WorkerPool::Options* workers, bool num_workers_given,
                         inference::BatchingOptions* batching, std::vector<std::string>* warnings);
// `certificates`: clients' certificates are verified. nullopt: callers are not told apart.
Status ReadCallerFlags(bool certificates, std::optional<callers::NameSource>* names);
Status ReadEngineFlags(engine::Options* options);
Status ReadGrpcFlags(rpc::GrpcServer::Options* options);
Status ReadItemFlags(std::vector<items::ItemTableConfig>* tables);
Status ReadLoadCheckFlags(LoadCheckOptions* options);
// `log_directory`: --request_log_directory.
Status ReadModelFlags(const std::string& log_directory, models::ModelManager::Options* options);
Status ReadMonitoringFlags(std::string* metrics_path);  // empty: no page for Prometheus
Status ReadOperationFlags(LogFormat* log_format, std::chrono::milliseconds* drain,
                          std::chrono::milliseconds* drain_timeout);
Status ReadRequestFlags(scheduling::WorkerPool::Options* workers, bool* num_workers_given,
                        TensorEncoding* encoding, inference::CallOptions* calls);
Status ReadOffloadFlags(std::optional<rpc::Offload::Options>* options);  // nullopt: no offload
// `places`: of the logs that a reload over the network may turn on.
Status ReadRequestLogFlags(request_log::RequestLogs::Options* options,
                           request_log::LogPlaces* places);
// For tensorflow_model_server's flags that have no effect here; a line each that was set.
Status ReadServingFlags(std::vector<std::string>* warnings);
// After ReadEngineFlags: what the file sets counts where a flag does not.
Status ReadSessionFlags(engine::Options* options);
// `check`: LoadCheckOptions has it.
Status ReadOpLibraryFlags(std::vector<std::string>* paths, std::string* check);
// nullopt: no HTTP.
Status ReadRestFlags(std::optional<http::HttpServer::Options>* options,
                     http::ModelApiOptions* model_api);
// After ReadModelFlags.
Status ReadShadowFlags(const models::ModelManager::Options& models,
                       std::vector<shadow::ShadowVersion>* versions,
                       std::vector<std::string>* warnings);
Status ReadTlsFlags(std::optional<TlsConfig>* tls);  // nullopt: no TLS
// Where a flag is not given, OpenTelemetry's own environment variable counts. nullopt: nothing is
// traced.
Status ReadTracingFlags(std::optional<tracing::Tracer::Options>* options);

}  // namespace colcast::flags

#endif  // COLCAST_SERVER_FLAGS_PARTS_H_
