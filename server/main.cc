// The native server: flags and wiring only.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "server/engine_library.h"
#include "server/flags/flags.h"
#include "server/log.h"
#include "server/models/model_manager.h"
#include "server/rpc/grpc_server.h"
#include "server/scheduling/worker_pool.h"

namespace colcast {
namespace {

// Blocks the signals that end the process in this thread and all it will start, so that one thread
// can wait for them.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// gRPC and TensorFlow write pages to the terminal otherwise, and a wrong request whole into the log;
// their own variables still win.
void QuietLibraries() {
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", /*overwrite=*/0);
}

Status Serve(const ServerOptions& options, const sigset_t& stop_signals) {
  std::unique_ptr<engine::Engine> engine;
  if (Status status = OpenEngine(options.engine, &engine); !status.ok()) return status;
  models::ModelManager models(options.models, engine.get());
  scheduling::WorkerPool workers(options.workers);
  metrics::Metrics metrics;
  const Backend backend{&models, &workers, &metrics, options.encoding, options.calls};
  std::unique_ptr<rpc::GrpcServer> server;
  if (Status status = rpc::GrpcServer::Start(options.grpc, backend, &server); !status.ok()) {
    return status;
  }
  Status loaded;
  std::thread loader([&] {
    loaded = models.Start();
    if (loaded.ok()) {
      server->SetServing(true);
      LogInfo("ready: gRPC on " + server->address());
    } else {
      kill(getpid(), SIGTERM);
    }
  });
  int signal = 0;
  sigwait(&stop_signals, &signal);
  models.Stop();
  loader.join();
  server->SetServing(false);
  if (loaded.ok()) LogInfo("stopping: answering what is in flight");
  server->Shutdown();
  return loaded.code == StatusCode::kCancelled ? OkStatus() : loaded;
}

}  // namespace
}  // namespace colcast

int main(int argc, char** argv) {
  const sigset_t stop_signals = colcast::BlockStopSignals();
  colcast::QuietLibraries();
  colcast::ServerOptions options;
  colcast::Status status = colcast::ParseFlags(argc, argv, &options);
  if (status.ok()) status = colcast::Serve(options, stop_signals);
  if (status.ok()) return 0;
  std::fprintf(stderr, "colcast_model_server: %s\n", status.message.c_str());
  return 1;
}
