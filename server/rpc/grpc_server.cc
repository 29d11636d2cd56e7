#include "server/rpc/grpc_server.h"

#include <utility>

#include "server/base/log.h"
#include "server/rpc/channel_arguments.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/reflection_service.h"

namespace colcast::rpc {
namespace {

std::vector<std::string> ServiceNames(const GrpcServer::Options& options) {
  std::vector<std::string> names = {kPredictionService, kModelService, kInferenceService,
                                    kReflectionService};
  if (options.health_service) names.push_back(kHealthService);
  return names;
}

std::unique_ptr<HealthService> MakeHealthService(const GrpcServer::Options& options) {
  if (!options.health_service) return nullptr;
  return std::make_unique<HealthService>(
      std::vector<std::string>{"", kPredictionService, kModelService, kInferenceService});
}

}  // namespace

GrpcServer::GrpcServer(const Options& options, const Backend& backend)
    : backend_(backend),
      offload_(options.offload ? std::make_unique<Offload>(*options.offload, backend_) : nullptr),
      health_service_(MakeHealthService(options)) {}

Status GrpcServer::Start(const Options& options, const Backend& backend, net::Poller* poller,
                         net::Accept http1, std::unique_ptr<GrpcServer>* server) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(options, backend));
  http2::ConnectionOptions connections = ReadChannelArguments(options.channel_arguments);
  connections.max_request_bytes = options.max_request_bytes;
  made->server_ = std::make_unique<http2::Server>(connections, made->Methods(options), poller,
                                                  std::move(http1));
  if (options.tls) {
    if (Status status = made->server_->SetTls(*options.tls); !status.ok()) return status;
  }
  if (Status status = made->Listen(options); !status.ok()) return status;
  made->running_ = true;
  *server = std::move(made);
  return OkStatus();
}

http2::Methods GrpcServer::Methods(const Options& options) {
  http2::Methods methods = PredictionMethods(backend_, offload_.get());
  methods.merge(ModelMethods(backend_.models, options.reloads));
  methods.merge(InferenceMethods(backend_));
  if (health_service_) methods.merge(health_service_->Methods());
  methods.emplace(kReflectionMethod, ReflectionMethod(ServiceNames(options)));
  return methods;
}

Status GrpcServer::Listen(const Options& options) {
  int port = 0;
  if (Status status = server_->Listen(options.host, options.port, &port); !status.ok()) {
    return status;
  }
  address_ = options.host + ':' + std::to_string(port);
  if (options.socket_path.empty()) return OkStatus();
  Status status = UnixSocket::Prepare(options.socket_path, &socket_.emplace());
  if (status.ok()) status = server_->Listen(socket_->listening_path());
  if (status.ok() && !socket_->in_use()) status = socket_->Publish();
  return status;
}

void GrpcServer::SetServing(bool serving) {
  if (serving && socket_ && socket_->in_use()) {
    std::call_once(socket_taken_over_, [this] {
      const Status status = socket_->Publish();
      if (!status.ok()) LogError(status.message);
    });
  }
  if (health_service_) health_service_->SetServing(serving);
}

void GrpcServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (!running_) return;
  running_ = false;
  if (socket_) socket_->Remove();
  const auto stop_offload = [this] {
    if (offload_) offload_->Stop();
  };
  if (!server_->Shutdown(deadline, stop_offload)) LogWarning("gRPC: cut calls that had not ended");
}

}  // namespace colcast::rpc
