#include "server/rpc/grpc_server.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <map>
#include <string>

#include "server/base/available_cores.h"
#include "server/base/log.h"
#include "server/rpc/http2_limits.h"
#include "server/rpc/reflection_service.h"

namespace colcast::rpc {
namespace {

// Of one connection: more wait in the client, where they cost nothing if their deadline passes.
int MaxConcurrentStreams() {
  constexpr int kLeast = 100;  // what RFC 9113 asks for
  constexpr int kPerCore = 16;
  return std::max(kLeast, kPerCore * AvailableCores());
}

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
  // gRPC takes the first value that it is given for a name: each is given once.
  std::map<std::string, std::string> arguments = {
      // Two servers on one port would share its connections silently.
      {GRPC_ARG_ALLOW_REUSEPORT, "0"},
      // Clients may keep idle connections alive; gRPC would hang up on those that ping more often
      // than every five minutes.
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, "5000"},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, "1"},
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, std::to_string(MaxConcurrentStreams())},
  };
  for (const auto& [name, value] : options.channel_arguments) arguments[name] = value;
  for (const auto& [name, value] : arguments) {
    int number = 0;
    if (absl::SimpleAtoi(value, &number)) {
      builder->AddChannelArgument(name, number);
    } else {
      builder->AddChannelArgument(name, value);
    }
  }
}

// The last value of a channel argument, or else `otherwise`.
int ChannelArgument(const GrpcServer::Options& options, const std::string& wanted, int otherwise) {
  for (const auto& [name, value] : options.channel_arguments) {
    if (name == wanted) static_cast<void>(absl::SimpleAtoi(value, &otherwise));
  }
  return otherwise;
}

void LimitHttp2(const GrpcServer::Options& options) {
  constexpr int kMetadataBytes = 8 << 10;  // gRPC's default
  constexpr size_t kHeaderBytesPerByte = 8;
  constexpr double kResetsPerSecond = 2000;
  const int metadata_bytes = ChannelArgument(options, GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
  SetHttp2Limits(kHeaderBytesPerByte * std::max(metadata_bytes, kMetadataBytes), kResetsPerSecond);
}

// One, for as many cores as it keeps busy: it reads what the workers decode.
int NumThreads() {
  constexpr int kCoresPerThread = 8;
  return std::max(1, AvailableCores() / kCoresPerThread);
}

std::vector<std::string> ServiceNames(const GrpcServer::Options& options) {
  std::vector<std::string> names = {kPredictionService, kModelService, kReflectionService};
  if (options.health_service) names.push_back(kHealthService);
  return names;
}

std::unique_ptr<HealthService> MakeHealthService(const GrpcServer::Options& options) {
  if (!options.health_service) return nullptr;
  return std::make_unique<HealthService>(
      std::vector<std::string>{"", kPredictionService, kModelService});
}

}  // namespace

GrpcServer::GrpcServer(const Options& options, const Backend& backend)
    : backend_(backend),
      max_unread_response_bytes_(options.max_unread_response_bytes),
      offload_(options.offload ? std::make_unique<Offload>(*options.offload, backend_) : nullptr),
      model_service_(kModelService, ModelMethods(backend.models, options.reloads)),
      health_service_(MakeHealthService(options)),
      reflection_service_(kReflectionMethod, ReflectionOpener(ServiceNames(options))) {}

Status GrpcServer::Start(const Options& options, const Backend& backend,
                         std::unique_ptr<GrpcServer>* server) {
  std::unique_ptr<GrpcServer> made(new GrpcServer(options, backend));
  const std::string wanted = options.host + ':' + std::to_string(options.port);
  int bound_port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(wanted, Credentials(options.tls), &bound_port);
  if (!options.socket_path.empty()) {
    UnixSocket& socket = made->socket_.emplace();
    if (Status status = UnixSocket::Prepare(options.socket_path, &socket); !status.ok()) {
      return status;
    }
    builder.AddListeningPort("unix:" + socket.listening_path(), Credentials(options.tls));
  }
  made->Register(&builder);
  LimitHttp2(options);
  builder.SetMaxReceiveMessageSize(options.max_request_bytes);
  builder.SetMaxSendMessageSize(-1);
  AddChannelArguments(options, &builder);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);  // inflate.h
  made->loop_ = std::make_shared<EventLoop>(&builder);
  made->server_ = builder.BuildAndStart();
  if (made->server_ == nullptr || bound_port == 0) {
    return Unavailable("cannot listen on ", wanted,
                       ": the port is in use, or the host is not one of this machine's");
  }
  made->address_ = options.host + ':' + std::to_string(bound_port);
  if (made->socket_ && !made->socket_->in_use()) {
    if (Status status = made->socket_->Publish(); !status.ok()) return status;
  }
  made->Serve();
  *server = std::move(made);
  return OkStatus();
}

void GrpcServer::Register(grpc::ServerBuilder* builder) {
  builder->RegisterService(&prediction_service_);
  builder->RegisterService(&model_service_);
  if (health_service_) health_service_->Register(builder);
  builder->RegisterService(&reflection_service_);
}

void GrpcServer::Serve() {
  const auto unread = std::make_shared<UnreadAnswers>(max_unread_response_bytes_);
  prediction_service_.Serve(loop_, unread);
  model_service_.Serve(loop_, unread);
  if (health_service_) health_service_->Serve(loop_, unread);
  reflection_service_.Serve(loop_.get());
  loop_->Start(NumThreads());
  running_ = true;
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
  if (health_service_) health_service_->Stop();
  reflection_service_.Stop();
  server_->Shutdown(deadline);
  if (std::chrono::system_clock::now() >= deadline)
    LogWarning("gRPC: cut calls that had not ended");
  loop_->Shutdown();
}

}  // namespace colcast::rpc
