// The native server's entry point: reads the flags, connects the components, serves, and stops.

#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/api/call.h"
#include "server/base/log.h"
#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/engine_library.h"
#include "server/flags/flags.h"
#include "server/http1/server.h"
#include "server/items/item_tables.h"
#include "server/load_check.h"
#include "server/metrics/metrics.h"
#include "server/models/model_manager.h"
#include "server/net/poller.h"
#include "server/pages/pages.h"
#include "server/request_log/request_logs.h"
#include "server/rest/model_api.h"
#include "server/rpc/grpc_server.h"
#include "server/scheduling/worker_pool.h"
#include "server/stop_signals.h"
#include "server/tracing/tracer.h"

namespace colcast {
namespace {

// Keeps TensorFlow from filling the terminal and from logging entire invalid requests, unless
// TF_CPP_MIN_LOG_LEVEL is already set. Protobuf would write a line for each request with invalid
// UTF-8, and wait for the reader of stderr.
void LimitLibraryLogs() {
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", /*overwrite=*/0);
  google::protobuf::SetLogHandler(nullptr);
}

// TensorFlow uses oneDNN on CPUs with AVX-512. By default, oneDNN has its own memory pool, where
// the server could neither measure nor free a run's memory.
void UseOneAllocator() { setenv("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1", /*overwrite=*/0); }

// Applies the logging_config of each model.
std::function<void(const std::vector<models::ModelConfig>&)> LogRequests(
    request_log::RequestLogs* logs) {
  return [logs](const std::vector<models::ModelConfig>& models) {
    std::map<std::string, request_log::LoggingConfig> configs;
    for (const models::ModelConfig& model : models) configs[model.name] = model.logging;
    logs->Configure(configs);
  };
}

Status StartHttp(const ServerOptions& options, const Backend& backend, net::Poller* poller,
                 std::unique_ptr<http::HttpServer>* server) {
  if (options.http.has_value()) {
    http::Router router;
    http::AddModelApi(backend, options.model_api, &router);
    pages::AddPages(backend, COLCAST_VERSION, options.metrics_path, &router);
    return http::HttpServer::Start(*options.http, std::move(router), poller, server);
  }
  if (!options.metrics_path.empty()) {
    LogWarning("--monitoring_config_file: no metrics without --rest_api_port");
  }
  return OkStatus();
}

Status OpenEngineWithOps(const ServerOptions& options, std::unique_ptr<engine::Engine>* engine) {
  if (Status status = OpenEngine(options.engine, engine); !status.ok()) return status;
  for (const std::string& path : options.op_libraries) {
    LogInfo("loading the op library " + path);
    if (Status status = (*engine)->LoadOpLibrary(path); !status.ok()) return status;
  }
  return OkStatus();
}

// Checks a load, in the separate process that CheckLoadInOwnProcess() has started.
Status CheckLoad(const ServerOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with its parent
  std::unique_ptr<engine::Engine> engine;
  if (Status status = OpenEngineWithOps(options, &engine); !status.ok()) return status;
  models::Loader loader(options.models.loader, engine.get());
  return loader.LoadAndDiscard(options.load_check.directory);
}

// Names what a stopping server waits for: last() returns the text of the object that was destroyed
// last. Declare one after each object whose destructor may wait.
class Ending {
 public:
  explicit Ending(const char* what) : what_(what) {}
  ~Ending() { last_ = what_; }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  static const char* last() { return last_; }

 private:
  const char* const what_;
  inline static std::atomic<const char*> last_{"a model is still running"};
};

Status Serve(ServerOptions options, const sigset_t& stop_signals) {
  if (!options.load_check.directory.empty()) return CheckLoad(options);
  if (options.load_check.enabled) {
    options.models.loader.check = [timeout = options.load_check.timeout](const std::string& path) {
      return CheckLoadInOwnProcess(path, timeout);
    };
  }
  std::unique_ptr<engine::Engine> engine;
  if (Status status = OpenEngineWithOps(options, &engine); !status.ok()) return status;
  metrics::Metrics metrics;
  request_log::RequestLogs request_logs(options.request_logs);
  options.models.on_configured = LogRequests(&request_logs);
  const Ending of_logs("request logs are still being written");
  items::ItemTables item_tables(options.item_tables, StopWasAsked);
  const Ending of_item_tables("an item table is still being read");
  options.models.loader.item_tables = &item_tables;
  models::ModelManager models(options.models, engine.get());
  const Ending of_models("a version is still being loaded or unloaded");
  std::unique_ptr<tracing::Tracer> tracer;
  const Ending of_traces("spans are still being sent");
  if (options.tracing) tracer = std::make_unique<tracing::Tracer>(*options.tracing);
  net::Poller poller(options.grpc.max_unread_response_bytes, options.max_rest_bytes);
  net::Standby standby(&poller);
  options.workers.events = &poller;
  scheduling::WorkerPool workers(options.workers);
  const Ending of_workers("a model is still running");
  scheduling::WorkerPool readers(api::ReaderOptions());
  std::atomic<bool> ready{false};
  const Backend backend{&models,
                        &models.served(),
                        &workers,
                        &readers,
                        &metrics,
                        &request_logs,
                        &item_tables,
                        tracer.get(),
                        options.caller_header,
                        options.encoding,
                        options.calls,
                        static_cast<size_t>(options.grpc.max_request_bytes),
                        static_cast<size_t>(options.engine.max_request_columns),
                        &ready};
  std::unique_ptr<http::HttpServer> http;
  if (options.tls) {
    Status status = net::TlsContext::Create(*options.tls, &options.grpc.tls);
    if (!status.ok()) return status;
  }
  if (options.http) options.http->tls = options.grpc.tls;
  if (options.http) options.http->caller_header = options.caller_header;
  if (Status status = StartHttp(options, backend, &poller, &http); !status.ok()) return status;
  std::unique_ptr<rpc::GrpcServer> server;
  if (Status status = rpc::GrpcServer::Start(options.grpc, backend, &poller, &server);
      !status.ok()) {
    return status;
  }
  Status loaded;
  const auto load = [&] {
    loaded = RunCaught("the models", [&models] { return models.Start(); });
    if (loaded.ok()) {
      ready = true;
      server->SetServing(true);
      LogInfo("ready: gRPC on " + server->address() +
              (http ? " and HTTP on " + http->address() : ""));
    } else if (loaded.code != StatusCode::kCancelled) {
      kill(getpid(), SIGTERM);
    }
  };
  Thread loader;
  if (Status status = StartThread("the first models", load, &loader); !status.ok()) return status;
  WaitForStop(stop_signals, [&] {
    models.PollNow();
    item_tables.PollNow();
  });
  EndAtNext(stop_signals);
  models.Stop();
  loader.join();
  ready = false;
  server->SetServing(false);
  if (http) http->Drain();
  if (loaded.ok()) {
    LogInfo("stopping: answering for " + std::to_string(options.drain.count()) +
            " ms more, then finishing the requests in flight");
    std::this_thread::sleep_for(options.drain);
  }
  const auto deadline = std::chrono::steady_clock::now() + options.drain_timeout;
  EndShortlyAfter(deadline, Ending::last);
  server->Shutdown(deadline);
  if (http) http->Shutdown(deadline);
  return loaded;
}

}  // namespace
}  // namespace colcast

int main(int argc, char** argv) {
  const sigset_t stop_signals = colcast::BlockStopSignals();
  colcast::LimitLibraryLogs();
  colcast::UseOneAllocator();
  colcast::ServerOptions options;
  colcast::Status status = colcast::ParseFlags(argc, argv, &options);
  colcast::SetLogFormat(options.log_format);
  for (const std::string& warning : options.warnings) colcast::LogWarning(warning);
  if (status.ok()) {
    colcast::StartLogWriter();
    status = colcast::RunCaught("start", [&] { return colcast::Serve(options, stop_signals); });
    colcast::FlushLog();
  }
  if (status.ok() || status.code == colcast::StatusCode::kCancelled) return 0;
  if (options.log_format == colcast::LogFormat::kJson) {
    colcast::LogError(status.message);
  } else {
    std::fprintf(stderr, "colcast_model_server: %s\n", status.message.c_str());
  }
  return 1;
}
