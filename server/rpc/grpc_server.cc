#include "server/rpc/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

namespace colcast::rpc {

Status GrpcServer::Start(const Options& options, const Backend& backend,
                         std::unique_ptr<GrpcServer>* server) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(backend));
  const std::string wanted = options.host + ':' + std::to_string(options.port);
  int bound_port = 0;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.AddListeningPort(wanted, grpc::InsecureServerCredentials(), &bound_port);
  builder.RegisterService(&made->prediction_service_);
  builder.RegisterService(&made->model_service_);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  // Two servers on one port would share its connections silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  made->server_ = builder.BuildAndStart();
  if (made->server_ == nullptr || bound_port == 0) {
    return Unavailable("can not listen on ", wanted,
                       ": the port is in use, or the host is not one of this machine's");
  }
  made->address_ = options.host + ':' + std::to_string(bound_port);
  made->SetServing(false);
  *server = std::move(made);
  return OkStatus();
}

void GrpcServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

void GrpcServer::Shutdown() { server_->Shutdown(); }

}  // namespace colcast::rpc
