#include "server/http2/server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "server/http2/peer.h"

namespace colcast::http2 {
namespace {

using scheduling::Clock;
using WallClock = std::chrono::system_clock;

// How often the thread that stands by looks whether anybody waits for the sockets.
constexpr std::chrono::milliseconds kLookEvery(20);
// How long a client that does not read may keep the server from ending a stream.
constexpr std::chrono::seconds kPatience(1);

// HTTP/2 or nothing.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  const bool found =
      SSL_select_next_proto(const_cast<unsigned char**>(chosen), size, kHttp2, sizeof(kHttp2),
                            offered, offered_size) == OPENSSL_NPN_NEGOTIATED;
  return found ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

struct Addresses {
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
  addrinfo* first = nullptr;
};

int Open(int family) { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

class Server::Listener final : public Pollable {
 public:
  Listener(int socket, SSL_CTX* tls, std::shared_ptr<Shared> shared)
      : socket_(socket), tls_(tls), shared_(std::move(shared)) {}
  ~Listener() override { close(socket_); }

  void Begin(const std::shared_ptr<Listener>& self) {
    number_ = shared_->poller->Add(socket_, self);
  }
  void End() {
    shared_->poller->Remove(socket_, number_);
    shutdown(socket_, SHUT_RDWR);
  }

  void Happened(uint32_t) override {
    for (;;) {
      sockaddr_storage address{};
      socklen_t size = sizeof(address);
      const int accepted = accept4(socket_, reinterpret_cast<sockaddr*>(&address), &size,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (accepted < 0) return;
      const int on = 1;
      setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      Connection::Start(std::make_unique<Socket>(accepted, tls_), PeerOf(address), shared_);
    }
  }

 private:
  const int socket_;
  SSL_CTX* const tls_;
  const std::shared_ptr<Shared> shared_;
  uint64_t number_ = 0;
};

void Server::TlsDeleter::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

Server::Server(const ConnectionOptions& options, Methods methods, Poller* poller)
    : shared_(std::make_shared<Shared>(options, std::move(methods), poller)),
      standby_([this] { StandBy(); }) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
}

Server::~Server() {
  for (const auto& listener : listeners_) listener->End();
  for (const auto& connection : Connections()) connection->CloseAtOnce();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  ending_.notify_all();
  standby_.join();
}

Status Server::SetTls(const TlsConfig& tls) {
  tls_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_alpn_select_cb(tls_.get(), ChooseProtocol, nullptr);
  SSL_CTX_set_options(tls_.get(), SSL_OP_NO_RENEGOTIATION);
  return UseTls(tls, tls_.get());
}

Status Server::Listen(const std::string& host, int port, int* bound) {
  const std::string name = host + ':' + std::to_string(port);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  Addresses found;
  const std::string bare =
      host.size() > 1 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
  if (getaddrinfo(bare.c_str(), std::to_string(port).c_str(), &hints, &found.first) != 0) {
    return Unavailable("cannot listen on ", name, ": there is no such host");
  }
  const int listener = Open(found.first->ai_family);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener, found.first->ai_addr, found.first->ai_addrlen) != 0) {
    close(listener);
    return Unavailable("cannot listen on ", name,
                       ": the port is in use, or the host is not one of this machine's");
  }
  *bound = PortOf(listener);
  return Add(listener, name);
}

Status Server::Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  unlink(path.c_str());
  const int listener = Open(AF_UNIX);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(listener);
    return Unavailable("cannot listen on ", path, ": ", std::strerror(errno));
  }
  return Add(listener, path);
}

Status Server::Add(int socket, const std::string& address) {
  if (listen(socket, SOMAXCONN) != 0) {
    close(socket);
    return Unavailable("cannot listen on ", address, ": ", std::strerror(errno));
  }
  const auto listener = std::make_shared<Listener>(socket, tls_.get(), shared_);
  listener->Begin(listener);
  listeners_.push_back(listener);
  return OkStatus();
}

std::vector<std::shared_ptr<Connection>> Server::Connections() const {
  std::vector<std::shared_ptr<Connection>> connections;
  for (const auto& each : shared_->poller->All()) {
    if (auto connection = std::dynamic_pointer_cast<Connection>(each)) {
      connections.push_back(std::move(connection));
    }
  }
  return connections;
}

void Server::StandBy() {
  pthread_setname_np(pthread_self(), "sockets");
  constexpr std::chrono::seconds kLookAtTimeEvery(1);
  Poller& poller = *shared_->poller;
  Clock::time_point looked = Clock::now();
  int64_t turns = poller.turns();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_.wait_for(lock, kLookEvery,
                           [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; })) {
    lock.unlock();
    // Those that wait take their turns; if there are none, and nobody has looked, all are busy.
    bool woken = false;
    while (!woken && poller.waiting() == 0 && poller.turns() == turns) {
      woken = poller.Poll(Clock::now() + kLookEvery);
      ++turns;
    }
    if (woken) poller.Wake();  // it was meant for a worker
    turns = poller.turns();
    if (Clock::now() - looked >= kLookAtTimeEvery) {
      looked = Clock::now();
      for (const auto& connection : Connections()) connection->LookAtTheTime();
    }
    lock.lock();
  }
}

template <typename Done>
bool Server::WaitUntil(WallClock::time_point deadline, const Done& done) const {
  constexpr std::chrono::milliseconds kStep(1);
  while (!done()) {
    if (WallClock::now() >= deadline) return false;
    std::this_thread::sleep_for(kStep);
  }
  return true;
}

bool Server::Shutdown(WallClock::time_point deadline) {
  for (const auto& listener : listeners_) listener->End();
  listeners_.clear();
  for (const auto& connection : Connections()) connection->Drain();
  const auto none = [this] { return shared_->connections == 0; };
  if (WaitUntil(std::min(deadline, WallClock::now() + kPatience), none)) return true;
  for (const auto& connection : Connections()) connection->DrainAtOnce();
  if (WaitUntil(deadline, none)) return true;
  const bool cut = shared_->calls > 0;
  for (const auto& connection : Connections()) connection->CloseAtOnce();
  return !cut;
}

}  // namespace colcast::http2
