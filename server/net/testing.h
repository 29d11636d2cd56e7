// For tests: a thread that polls.
#ifndef COLCAST_SERVER_NET_TESTING_H_
#define COLCAST_SERVER_NET_TESTING_H_

#include <atomic>
#include <thread>

#include "server/net/poller.h"

namespace colcast::net {

class PollingThread {
 public:
  explicit PollingThread(Poller* poller)
      : poller_(poller), thread_([this] {
          while (!ended_) poller_->Poll(scheduling::Clock::time_point::max());
        }) {}
  ~PollingThread() {
    ended_ = true;
    poller_->Wake();
    thread_.join();
  }

 private:
  Poller* const poller_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_TESTING_H_
