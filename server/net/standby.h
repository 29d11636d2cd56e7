// A thread that waits for the sockets while all workers are busy, and once a second checks for
// connections that have waited too long.
#ifndef COLCAST_SERVER_NET_STANDBY_H_
#define COLCAST_SERVER_NET_STANDBY_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "server/base/thread.h"
#include "server/net/poller.h"

namespace colcast::net {

class Standby {
 public:
  // `poller` must outlive this object.
  explicit Standby(Poller* poller);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // Checks all sockets for timeouts now, instead of once a second: for tests.
  void LookNow() { look_now_ = true; }

 private:
  void Run();

  Poller& poller_;
  std::atomic<bool> look_now_{false};
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_STANDBY_H_
