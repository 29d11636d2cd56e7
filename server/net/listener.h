// A port or unix socket to which clients connect.
#ifndef COLCAST_SERVER_NET_LISTENER_H_
#define COLCAST_SERVER_NET_LISTENER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/net/poller.h"
#include "server/net/socket.h"
#include "server/net/tls_context.h"

namespace colcast::net {

// Serves a client that has connected. May be called on several threads at once.
using Accept = std::function<void(std::unique_ptr<Socket> socket, std::string peer)>;

// A separate thread that accepts TLS clients and runs their handshakes, so that handshakes delay no
// requests.
class Handshakes {
 public:
  static constexpr int kMaxPerHost = 256;

  // `accept` serves a client after its handshake, or a client that sent plain HTTP instead.
  explicit Handshakes(Accept accept);
  ~Handshakes();
  Handshakes(const Handshakes&) = delete;
  Handshakes& operator=(const Handshakes&) = delete;

  Poller& poller() { return poller_; }
  // Disconnects a client that does not finish within 20 s, or whose host already has kMaxPerHost
  // unfinished handshakes.
  void Begin(std::unique_ptr<Socket> socket, std::string peer);
  // Ends the thread, and disconnects the clients that have not finished.
  void End();

 private:
  class Handshake;
  void Run();

  const Accept accept_;
  Poller poller_;
  std::atomic<bool> ended_{false};
  Thread thread_;
};

class Listener final : public Pollable {
 public:
  struct Serving {
    std::shared_ptr<TlsContext> tls;  // null for unencrypted connections
    Protocol protocol;
    Accept accept;
  };

  // Listens on `port`, or on any free port if it is 0. Returns UNAVAILABLE, with the reason, on
  // failure. `poller` must outlive the listener, and owns it until End().
  static Status Listen(const std::string& host, int port, Serving serving, Poller* poller,
                       std::shared_ptr<Listener>* listener);
  // Listens on a unix socket.
  static Status Listen(const std::string& path, Serving serving, Poller* poller,
                       std::shared_ptr<Listener>* listener);
  ~Listener() override;

  int port() const;
  void End();

  void Happened(uint32_t events) override;
  // Reloads changed certificates. Accepts clients that had to wait for a free descriptor, because
  // the kernel announces each client only once.
  void PostTimer() override;

  Listener(int socket, Serving serving, Poller* poller);

 private:
  static Status Begin(int socket, Serving serving, Poller* poller,
                      std::shared_ptr<Listener>* listener);

  // The poller whose threads accept clients.
  Poller& accepting() { return handshakes_ == nullptr ? *poller_ : handshakes_->poller(); }
  bool MakeRoom();
  void Serve(int accepted, std::string peer);

  const int socket_;
  const Serving serving_;
  Poller* const poller_;
  const std::unique_ptr<Handshakes> handshakes_;  // null for unencrypted connections
  std::atomic<uint64_t> number_{0};               // the poller's number for socket_; 0 until known
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_LISTENER_H_
