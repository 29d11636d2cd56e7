// The gRPC endpoint, which serves on a port and on a unix socket.
#ifndef COLCAST_SERVER_RPC_GRPC_SERVER_H_
#define COLCAST_SERVER_RPC_GRPC_SERVER_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/backend.h"
#include "server/http2/connection.h"
#include "server/http2/server.h"
#include "server/net/poller.h"
#include "server/net/tls_context.h"
#include "server/rpc/services.h"

namespace colcast::rpc {

class GrpcServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";
    int port = 8500;                              // 0 for any free port
    std::string socket_path;                      // of a unix socket; empty for none
    std::shared_ptr<net::TlsContext> tls;         // for the port and the socket; null for none
    int max_request_bytes = 256 << 20;            // as received, and also after decompression
    size_t max_unread_response_bytes = 32 << 20;  // per client host, including REST
    bool health_service = true;
    Reloads reloads;
    http2::ConnectionOptions connections;  // apart from max_request_bytes
  };

  // Returns UNAVAILABLE, naming the address, if listening fails, and INVALID_ARGUMENT if the socket
  // path is too long or names a file that is not a socket. Replaces an existing socket. `poller`,
  // which idle threads poll, must outlive the server and the workers.
  static Status Start(const Options& options, const Backend& backend, net::Poller* poller,
                      std::unique_ptr<GrpcServer>* server);

  ~GrpcServer() { Shutdown(std::chrono::steady_clock::time_point::max()); }

  // HOST:PORT with the bound port.
  const std::string& address() const { return address_; }

  // Sets the answer of grpc.health.v1.Health for the server and each service; NOT_SERVING until
  // this is called.
  void SetServing(bool serving);

  // Accepts no more requests, ends streams, and returns when the requests in flight have been
  // answered. Cancels and logs calls unfinished at `deadline`, for example calls whose messages do
  // not arrive, but still waits for requests that are running on a worker.
  void Shutdown(std::chrono::steady_clock::time_point deadline);

 private:
  GrpcServer(const Options& options, const Backend& backend);
  http2::Methods Methods(const Options& options);
  Status Listen(const Options& options);

  const Backend backend_;
  const std::unique_ptr<HealthService> health_service_;  // null unless Options::health_service
  std::string address_;
  std::unique_ptr<http2::Server> server_;
  bool running_ = false;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_GRPC_SERVER_H_
