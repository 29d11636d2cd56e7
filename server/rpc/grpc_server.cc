#include "server/rpc/grpc_server.h"

#include <absl/strings/numbers.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "server/base/log.h"
#include "server/base/machine.h"
#include "server/rpc/services.h"

namespace colcast::rpc {

namespace {

// Concurrent calls per connection. Further calls wait in the client, where they cost this server
// nothing if their deadline passes.
uint32_t MaxConcurrentStreams() {
  constexpr int kLeast = 100;  // the minimum that RFC 9113 recommends
  constexpr int kPerCore = 16;
  return static_cast<uint32_t>(std::max(kLeast, kPerCore * AvailableCores()));
}

// Returns false for an unknown name.
bool Read(const std::string& name, int64_t value, http2::ConnectionOptions* options) {
  const std::pair<const char*, std::chrono::milliseconds*> times[] = {
      {"grpc.keepalive_time_ms", &options->keepalive_time},
      {"grpc.keepalive_timeout_ms", &options->keepalive_timeout},
      {"grpc.max_connection_idle_ms", &options->max_idle},
      {"grpc.max_connection_age_ms", &options->max_age},
      {"grpc.max_connection_age_grace_ms", &options->max_age_grace},
      {"grpc.http2.min_ping_interval_without_data_ms", &options->min_ping_interval},
      {"grpc.http2.min_recv_ping_interval_without_data_ms", &options->min_ping_interval},
  };
  for (const auto& [known, time] : times) {
    if (name != known) continue;
    *time = std::chrono::milliseconds(value);
    return true;
  }
  const std::pair<const char*, uint32_t*> numbers[] = {
      {"grpc.max_concurrent_streams", &options->max_concurrent_streams},
      {"grpc.max_metadata_size", &options->max_header_bytes},
  };
  for (const auto& [known, number] : numbers) {
    if (name != known) continue;
    *number = static_cast<uint32_t>(value);
    return true;
  }
  return false;
}

}  // namespace

http2::ConnectionOptions ReadChannelArguments(const ChannelArguments& arguments) {
  constexpr int64_t kMost = INT32_MAX;  // the range of gRPC's arguments
  http2::ConnectionOptions options;
  options.max_concurrent_streams = MaxConcurrentStreams();
  for (const auto& [name, text] : arguments) {
    int64_t value = 0;
    // No call could be made over a connection without streams.
    const int64_t least = name == "grpc.max_concurrent_streams" ? 1 : 0;
    const bool is_valid = absl::SimpleAtoi(text, &value) && value >= least && value <= kMost;
    if (!is_valid || !Read(name, value, &options)) {
      LogWarning("--grpc_channel_arguments: " + name + "=" + text + " has no effect");
    }
  }
  return options;
}

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

namespace {

// Removes the socket that a server left at `path`.
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
  http2::Methods methods = PredictionMethods(backend_);
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
