#include "server/rpc/grpc_server.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "server/base/log.h"
#include "server/rpc/services.h"
#include "server/rpc/wire_calls.h"

namespace colcast::rpc {

namespace {

std::unique_ptr<HealthService> MakeHealthService(const GrpcServer::Options& options) {
  if (!options.health_service) return nullptr;
  return std::make_unique<HealthService>(
      std::vector<std::string>{"", kPredictionService, kModelService, kInferenceService});
}

}  // namespace

GrpcServer::GrpcServer(const Options& options, const Backend& backend)
    : backend_(backend), health_service_(MakeHealthService(options)) {}

Status GrpcServer::Start(const Options& options, const Backend& backend, net::Poller* poller,
                         std::unique_ptr<GrpcServer>* server) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(options, backend));
  http2::ConnectionOptions connections = options.connections;
  connections.max_request_bytes = options.max_request_bytes;
  made->server_ =
      std::make_unique<http2::Server>(connections, made->Methods(options), poller, options.tls);
  if (Status status = made->Listen(options); !status.ok()) return status;
  made->running_ = true;
  *server = std::move(made);
  return OkStatus();
}

namespace {

// Removes the socket that an earlier server left at `path`.
Status RemoveSocket(const std::string& path) {
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMost) {
    return InvalidArgument("--grpc_socket_path: ", path, " has ", path.size(),
                           " bytes, expected at most ", kMost);
  }
  struct stat file;
  if (lstat(path.c_str(), &file) != 0) return OkStatus();
  if (!S_ISSOCK(file.st_mode)) {
    return InvalidArgument("--grpc_socket_path: the file ", path, " is not a socket");
  }
  unlink(path.c_str());
  return OkStatus();
}

}  // namespace

http2::Methods GrpcServer::Methods(const Options& options) {
  http2::Methods methods = ModelCalls(backend_);
  methods.merge(PredictionMethods(backend_));
  methods.merge(ModelMethods(backend_.models, options.reloads));
  methods.merge(InferenceMethods(backend_));
  if (health_service_) methods.merge(health_service_->Methods());
  return methods;
}

Status GrpcServer::Listen(const Options& options) {
  int port = 0;
  if (Status status = server_->Listen(options.host, options.port, &port); !status.ok()) {
    return status;
  }
  address_ = options.host + ':' + std::to_string(port);
  if (options.socket_path.empty()) return OkStatus();
  Status status = RemoveSocket(options.socket_path);
  return status.ok() ? server_->Listen(options.socket_path) : status;
}

void GrpcServer::SetServing(bool serving) {
  if (health_service_) health_service_->SetServing(serving);
}

void GrpcServer::Shutdown(std::chrono::steady_clock::time_point deadline) {
  if (!running_) return;
  running_ = false;
  if (!server_->Shutdown(deadline)) LogWarning("gRPC: cut off unfinished calls");
}

}  // namespace colcast::rpc
