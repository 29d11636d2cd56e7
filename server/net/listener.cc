#include "server/net/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "server/base/log.h"
#include "server/net/connection.h"

namespace colcast::net {
namespace {

struct Addresses {
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
  addrinfo* first = nullptr;
};

int Open(int family) { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

}  // namespace

Listener::Listener(int socket, Serving serving, Poller* poller)
    : socket_(socket),
      serving_(std::move(serving)),
      poller_(poller),
      handshakes_(serving_.tls == nullptr ? nullptr
                                          : std::make_unique<Handshakes>(serving_.accept)) {}

Listener::~Listener() { close(socket_); }

Status Listener::Listen(const std::string& host, int port, Serving serving, Poller* poller,
                        std::shared_ptr<Listener>* listener) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  Addresses found;
  const std::string bare =
      host.size() > 1 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
  if (getaddrinfo(bare.c_str(), std::to_string(port).c_str(), &hints, &found.first) != 0) {
    return Unavailable("there is no such host");
  }
  const int socket = Open(found.first->ai_family);
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket, found.first->ai_addr, found.first->ai_addrlen) != 0) {
    const int error = errno;
    close(socket);
    return Unavailable(error == EADDRINUSE      ? "the port is in use"
                       : error == EADDRNOTAVAIL ? "the host is not an address of this machine"
                                                : std::strerror(error));
  }
  return Begin(socket, std::move(serving), poller, listener);
}

Status Listener::Listen(const std::string& path, Serving serving, Poller* poller,
                        std::shared_ptr<Listener>* listener) {
  const sockaddr_un address = UnixAddress(path);
  const int socket = Open(AF_UNIX);
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const Status status = Unavailable(std::strerror(errno));
    close(socket);
    return status;
  }
  return Begin(socket, std::move(serving), poller, listener);
}

Status Listener::Begin(int socket, Serving serving, Poller* poller,
                       std::shared_ptr<Listener>* listener) {
  auto made = std::make_shared<Listener>(socket, std::move(serving), poller);
  if (listen(socket, SOMAXCONN) != 0) return Unavailable(std::strerror(errno));
  made->number_ = made->accepting().Add(socket, made);
  *listener = std::move(made);
  return OkStatus();
}

int Listener::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void Listener::End() {
  accepting().Remove(socket_, number_);
  shutdown(socket_, SHUT_RDWR);
  // Ends the handshake thread here; otherwise that thread could be the one to destroy the listener.
  if (handshakes_ != nullptr) handshakes_->End();
}

void Listener::PostTimer() {
  if (serving_.tls != nullptr) serving_.tls->Reload();
  Happened(0);
}

// Closes connections if few descriptors are free, to reserve some for files that the server opens.
// The next free descriptor's number shows how many are in use. Returns false if there is no
// connection to close.
bool Listener::MakeRoom() {
  constexpr rlim_t kReserve = 64;
  constexpr size_t kAtOnce = 16;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t most = limit.rlim_cur - std::min(kReserve, limit.rlim_cur / 4);
  const int next = dup(socket_);
  if (next >= 0) close(next);
  if (next >= 0 && static_cast<rlim_t>(next) < most) return true;
  const auto close_some = [](const Poller& poller) {
    return CloseIdlest(poller.AllOf<Connection>(), kAtOnce);
  };
  return (handshakes_ != nullptr && close_some(handshakes_->poller())) || close_some(*poller_);
}

void Listener::Happened(uint32_t) {
  constexpr int kPerTurn = 16;  // other work then gets its turn
  for (int i = 0; i < kPerTurn || number_ == 0; ++i) {
    if (!MakeRoom()) return;
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    const int accepted = accept4(socket_, reinterpret_cast<sockaddr*>(&address), &size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (accepted < 0) return;
    Serve(accepted, PeerOf(address));
  }
  accepting().Again(socket_, number_);
}

void Listener::Serve(int accepted, std::string peer) {
  const int on = 1;
  setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  try {
    const auto context =
        serving_.tls == nullptr ? nullptr : serving_.tls->current(serving_.protocol);
    auto socket = std::make_unique<Socket>(accepted, context.get());
    if (handshakes_ != nullptr) {
      handshakes_->Begin(std::move(socket), std::move(peer));
    } else {
      serving_.accept(std::move(socket), std::move(peer));
    }
  } catch (const std::bad_alloc&) {
    LogError("out of memory for a new connection: it is closed");
  }
}

class Handshakes::Handshake final : public Connection {
 public:
  using Connection::Begin;

  Handshake(Handshakes* all, std::unique_ptr<Socket> socket, std::string peer)
      : Connection(&all->poller_, *socket, std::move(peer)),
        accept_(all->accept_),
        socket_(std::move(socket)) {}

 private:
  void DoNow(unsigned work) override {
    constexpr std::chrono::seconds kPatience(20);
    if (socket_ == nullptr) return;
    const bool is_late = (work & kTime) != 0 && scheduling::Clock::now() - began_ >= kPatience;
    if (is_late || (work & kClose) != 0) return Close();
    if ((work & ~kTime) == 0) return;
    const Socket::Result result = socket_->Handshake();
    if (result == Socket::Result::kAgain) return;
    if (result != Socket::Result::kDone && !socket_->got_plain_http()) return Close();
    accept_(TakeSocket(), peer());
  }
  // Shuts the connection down first, since just closing the descriptor could reset it and lose sent
  // data.
  void Close() override {
    if (socket_ != nullptr) TakeSocket()->Close();
  }
  bool IsIdle() const override { return true; }
  std::unique_ptr<Socket> TakeSocket() {
    End();
    return std::move(socket_);
  }

  const Accept& accept_;
  std::unique_ptr<Socket> socket_;  // null after it was passed on or closed
  const scheduling::Clock::time_point began_ = scheduling::Clock::now();
};

Handshakes::Handshakes(Accept accept)
    : accept_(std::move(accept)), thread_("handshakes", [this] { Run(); }) {}

Handshakes::~Handshakes() { End(); }

void Handshakes::End() {
  if (ended_.exchange(true)) return;
  poller_.Wake();
  thread_.join();
  for (const auto& each : poller_.All()) each->CloseAtOnce();
}

void Handshakes::Begin(std::unique_ptr<Socket> socket, std::string peer) {
  // Each unfinished handshake holds a reference to its host.
  if (poller_.hosts().Of(peer).use_count() > kMaxPerHost) return;
  std::make_shared<Handshake>(this, std::move(socket), std::move(peer))->Begin();
}

void Handshakes::Run() {
  using scheduling::Clock;
  constexpr std::chrono::seconds kTick(1);
  pthread_setname_np(pthread_self(), "handshakes");
  LowerThisThreadsPriority();
  Clock::time_point next = Clock::now() + kTick;
  while (!ended_) {
    poller_.Poll(next);
    if (Clock::now() < next) continue;
    next = Clock::now() + kTick;
    for (const auto& each : poller_.All()) each->PostTimer();
  }
}

}  // namespace colcast::net
