// A thread that waits for the sockets while all workers are busy, and once a second checks for
// connections that have waited too long.
#ifndef COLCAST_SERVER_NET_STANDBY_H_
#define COLCAST_SERVER_NET_STANDBY_H_

#include <atomic>

#include "server/base/thread.h"
#include "server/net/poller.h"

namespace colcast::net {

class Standby {
 public:
  // `poller` must outlive this object.
  explicit Standby(Poller* poller);
  ~Standby() { ending_.Set(); }
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // Checks all sockets for timeouts now, instead of once a second: for tests.
  void LookNow() { look_now_ = true; }

 private:
  void Run();

  Poller& poller_;
  std::atomic<bool> look_now_{false};
  StopFlag ending_;
  Thread thread_;
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_STANDBY_H_
