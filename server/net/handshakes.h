// A separate thread that accepts TLS clients and runs their handshakes, so that handshakes delay no
// requests.
#ifndef COLCAST_SERVER_NET_HANDSHAKES_H_
#define COLCAST_SERVER_NET_HANDSHAKES_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "server/base/thread.h"
#include "server/net/poller.h"
#include "server/net/socket.h"

namespace colcast::net {

// Serves a client that has connected. May be called on several threads at once.
using Accept = std::function<void(std::unique_ptr<Socket> socket, std::string peer)>;

class Handshakes {
 public:
  static constexpr int kMaxPerHost = 256;

  // `accept` serves a client after its handshake, or one that sent plain HTTP instead.
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

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_HANDSHAKES_H_
