// The gRPC endpoint: the services, the health check and reflection, on a port and on a unix socket.
#ifndef COLCAST_SERVER_RPC_GRPC_SERVER_H_
#define COLCAST_SERVER_RPC_GRPC_SERVER_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/backend.h"
#include "server/base/tls_config.h"
#include "server/http2/server.h"
#include "server/net/listener.h"
#include "server/net/poller.h"
#include "server/rpc/health_service.h"
#include "server/rpc/model_service.h"
#include "server/rpc/offload.h"
#include "server/rpc/prediction_service.h"
#include "server/rpc/unix_socket.h"

namespace colcast::rpc {

class GrpcServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";
    int port = 8500;                              // 0: any free one
    std::string socket_path;                      // of a unix socket; empty: none
    std::optional<TlsConfig> tls;                 // on the port and on the socket
    int max_request_bytes = 256 << 20;            // as received, and as decompressed
    size_t max_unread_response_bytes = 32 << 20;  // by the clients of one host, over REST, too
    bool health_service = true;
    std::optional<Offload::Options> offload;  // of large Predict requests
    Reloads reloads;
    // By gRPC's names: "grpc.max_connection_age_ms", "2000".
    std::vector<std::pair<std::string, std::string>> channel_arguments;
  };

  // UNAVAILABLE, naming the address, if it cannot be listened on; as UnixSocket has it for the
  // socket. One that another server listens on is taken over when this one serves.
  // `poller`, which idle threads poll, outlives the server and the workers. `http1`, which may
  // be null, serves the clients that speak HTTP/1.
  static Status Start(const Options& options, const Backend& backend, net::Poller* poller,
                      net::Accept http1, std::unique_ptr<GrpcServer>* server);

  ~GrpcServer() { Shutdown(std::chrono::system_clock::time_point::max()); }

  // HOST:PORT with the port that was bound.
  const std::string& address() const { return address_; }

  // The answer of grpc.health.v1.Health, for the server and for each service by name; NOT_SERVING
  // until told otherwise.
  void SetServing(bool serving);

  // Takes no more requests and returns when those in flight have been answered. Streams end. Calls
  // that have not ended by `deadline`, such as one whose message does not arrive, are cancelled and
  // logged; a request that a worker runs is waited for.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  GrpcServer(const Options& options, const Backend& backend);
  http2::Methods Methods(const Options& options);
  Status Listen(const Options& options);

  const Backend backend_;
  const std::unique_ptr<Offload> offload_;               // null: all requests run here
  const std::unique_ptr<HealthService> health_service_;  // null: there is none
  std::string address_;
  std::unique_ptr<http2::Server> server_;
  bool running_ = false;
  std::optional<UnixSocket> socket_;
  std::once_flag socket_taken_over_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_GRPC_SERVER_H_
