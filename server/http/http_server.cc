#include "server/http/http_server.h"

#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/log.h"
#include "server/http/session.h"

namespace colcast::http {
namespace {

using tcp = net::ip::tcp;

class Server final : public HttpServer {
 public:
  Server(const Options& options, Router router)
      : options_(options),
        router_(std::move(router)),
        connections_(options.max_connections),
        memory_(options.max_memory_bytes),
        acceptor_(net::make_strand(context_)),
        retry_(acceptor_.get_executor()) {}

  ~Server() override { Shutdown(std::chrono::system_clock::time_point::max()); }

  std::string address() const override { return address_; }

  Status PrepareTls() {
    return options_.tls ? UseTls(*options_.tls, tls_.native_handle()) : OkStatus();
  }

  Error Listen() {
    Error error;
    std::string host = options_.host;
    if (!host.empty() && host.front() == '[') host = host.substr(1, host.size() - 2);
    tcp::resolver resolver(context_);
    const auto found =
        resolver.resolve(host, std::to_string(options_.port),
                         tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) return error;
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(net::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
    if (!error) {
      address_ = options_.host + ':' + std::to_string(acceptor_.local_endpoint(error).port());
    }
    return error;
  }

  void Run() {
    Accept();
    for (int i = 0; i < options_.num_threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  void Drain() override { connections_.Drain(); }

  void Shutdown(std::chrono::system_clock::time_point deadline) override {
    net::post(acceptor_.get_executor(), [this] {
      Error ignored;
      acceptor_.close(ignored);
      retry_.cancel();
    });
    if (!threads_.empty()) connections_.StopAll(deadline);
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void Work() {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception& error) {
        // Only running out of memory comes here; it has ended one connection.
        LogError(std::string("HTTP: ") + error.what());
      }
    }
  }

  void Accept() {
    acceptor_.async_accept(net::make_strand(context_),
                           [this](const Error& error, tcp::socket socket) {
                             if (!acceptor_.is_open()) return;
                             if (error) return AcceptLater();
                             Serve(std::move(socket));
                             Accept();
                           });
  }

  // Out of file descriptors, most likely: trying again at once would only heat the core.
  void AcceptLater() {
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](const Error& error) {
      if (!error) Accept();
    });
  }

  void Serve(tcp::socket socket) {
    Error ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    std::unique_ptr<Connections::Place> place = connections_.Add();
    if (place == nullptr) return TurnAway(std::move(socket));
    beast::tcp_stream stream(std::move(socket));
    if (!options_.tls) return Start(std::move(stream), std::move(place));
    Start(beast::ssl_stream<beast::tcp_stream>(std::move(stream), tls_), std::move(place));
  }

  template <typename Stream>
  void Start(Stream stream, std::unique_ptr<Connections::Place> place) {
    const auto session = std::make_shared<Session<Stream>>(std::move(stream), std::move(place),
                                                           options_, router_, &memory_);
    // On the session's strand, as all that follows.
    net::post(session->executor(), [session] { session->Start(); });
  }

  void TurnAway(tcp::socket socket) {
    if (options_.tls) return;
    static constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 35\r\n\r\n"
        "{ \"error\": \"too many connections\" }";
    Error ignored;
    socket.non_blocking(true, ignored);
    socket.send(net::buffer(kFull.data(), kFull.size()), 0, ignored);
    socket.shutdown(net::socket_base::shutdown_send, ignored);
  }

  const Options options_;
  const Router router_;
  Connections connections_;
  MemoryLimit memory_;
  net::io_context context_;
  // Requests that are being answered elsewhere are work that the context knows nothing of.
  const net::executor_work_guard<net::io_context::executor_type> work_ =
      net::make_work_guard(context_);
  tcp::acceptor acceptor_;
  net::steady_timer retry_;
  net::ssl::context tls_{net::ssl::context::tls_server};
  std::string address_;
  std::vector<std::thread> threads_;
};

}  // namespace

Status HttpServer::Start(const Options& options, Router router,
                         std::unique_ptr<HttpServer>* server) {
  auto made = std::make_unique<Server>(options, std::move(router));
  if (Status status = made->PrepareTls(); !status.ok()) return status;
  if (const Error error = made->Listen()) {
    return Unavailable("cannot listen on ", options.host, ':', options.port,
                       " for HTTP: ", error.message());
  }
  made->Run();
  *server = std::move(made);
  return OkStatus();
}

}  // namespace colcast::http
