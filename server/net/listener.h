// A port or a unix socket that clients connect to.
#ifndef COLCAST_SERVER_NET_LISTENER_H_
#define COLCAST_SERVER_NET_LISTENER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/base/status.h"
#include "server/net/poller.h"
#include "server/net/socket.h"
#include "server/net/tls_context.h"

namespace colcast::net {

// Serves a client that has connected. On any thread, on several at a time.
using Accept = std::function<void(std::unique_ptr<Socket> socket, std::string peer)>;

class Listener final : public Pollable {
 public:
  struct Serving {
    TlsContext tls;  // null: in the clear
    Accept accept;
  };

  // Listens, on any free port where `port` is 0. UNAVAILABLE, saying why it cannot. `poller`
  // outlives the listener, which it holds until End().
  static Status Listen(const std::string& host, int port, Serving serving, Poller* poller,
                       std::shared_ptr<Listener>* listener);
  // On a unix socket.
  static Status Listen(const std::string& path, Serving serving, Poller* poller,
                       std::shared_ptr<Listener>* listener);
  ~Listener() override;

  int port() const;
  void End();

  void Happened(uint32_t events) override;
  // Those that could not be accepted because no more files could be open.
  void LookAtTheTime() override { Happened(0); }

  // Implementation details follow.
  Listener(int socket, Serving serving, Poller* poller);

 private:
  static Status Begin(int socket, Serving serving, Poller* poller,
                      std::shared_ptr<Listener>* listener);

  const int socket_;
  const Serving serving_;
  Poller* const poller_;
  std::atomic<uint64_t> number_{0};  // 0: not yet known
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_LISTENER_H_
