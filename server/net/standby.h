// A thread that waits for the sockets where nobody else does for a while, because all are busy, and
// has what waits for too long looked at.
#ifndef COLCAST_SERVER_NET_STANDBY_H_
#define COLCAST_SERVER_NET_STANDBY_H_

#include <absl/base/thread_annotations.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "server/net/poller.h"

namespace colcast::net {

class Standby {
 public:
  // `poller` outlives it.
  explicit Standby(Poller* poller);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

 private:
  void Run();

  Poller& poller_;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_STANDBY_H_
