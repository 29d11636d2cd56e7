#include "server/rpc/grpc_server.h"

#include <absl/strings/numbers.h>
#include <google/protobuf/message.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <thread>

#include "server/protos/health.pb.h"
#include "server/rpc/bounded_inflate.h"
#include "server/rpc/unix_socket.h"

namespace colcast::rpc {
namespace {

std::shared_ptr<grpc::ServerCredentials> Credentials(const std::optional<TlsConfig>& tls) {
  if (!tls) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      tls->client_authorities.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                      : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls->client_authorities;
  options.pem_key_cert_pairs.push_back({tls->key, tls->certificates});
  return grpc::SslServerCredentials(options);
}

void AddChannelArguments(const GrpcServer::Options& options, grpc::ServerBuilder* builder) {
  // Two servers on one port would share its connections silently.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Clients may keep idle connections alive; gRPC would hang up on those that ping more often than
  // every five minutes.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  for (const auto& [name, value] : options.channel_arguments) {
    int number = 0;
    if (absl::SimpleAtoi(value, &number)) {
      builder->AddChannelArgument(name, number);
    } else {
      builder->AddChannelArgument(name, value);
    }
  }
}

// One, for as many cores as it keeps busy: it reads what the workers decode.
int NumThreads() {
  constexpr int kCoresPerThread = 8;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / kCoresPerThread);
}

}  // namespace

Status GrpcServer::Start(const Options& options, const Backend& backend,
                         std::unique_ptr<GrpcServer>* server) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(backend));
  const std::string wanted = options.host + ':' + std::to_string(options.port);
  int bound_port = 0;
  if (!getenv("PROTO")) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  google::protobuf::LinkMessageReflection<grpc::health::v1::HealthCheckRequest>();
  grpc::EnableDefaultHealthCheckService(options.health_service && !getenv("PROTO"));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(wanted, Credentials(options.tls), &bound_port);
  if (!options.socket_path.empty()) {
    if (Status status = ClearSocketPath(options.socket_path); !status.ok()) return status;
    builder.AddListeningPort("unix:" + options.socket_path, Credentials(options.tls));
  }
  builder.RegisterService(&made->prediction_service_);
  builder.RegisterService(&made->model_service_);
  SetMaxInflatedBytes(options.max_request_bytes);
  builder.SetMaxReceiveMessageSize(options.max_request_bytes);
  builder.SetMaxSendMessageSize(-1);
  AddChannelArguments(options, &builder);
  made->loop_ = std::make_unique<EventLoop>(&builder);
  made->server_ = builder.BuildAndStart();
  if (made->server_ == nullptr || bound_port == 0) {
    return Unavailable("can not listen on ", wanted,
                       ": the port is in use, or the host is not one of this machine's");
  }
  made->address_ = options.host + ':' + std::to_string(bound_port);
  made->prediction_service_.Serve(made->loop_.get());
  made->model_service_.Serve(made->loop_.get());
  made->loop_->Start(NumThreads());
  made->SetServing(false);
  *server = std::move(made);
  return OkStatus();
}

void GrpcServer::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = server_->GetHealthCheckService();
  if (health == nullptr) return;
  for (const char* name : {"", kPredictionService, kModelService}) {
    health->SetServingStatus(name, serving);
  }
}

void GrpcServer::Shutdown() {
  server_->Shutdown();
  loop_->Shutdown();
}

}  // namespace colcast::rpc
