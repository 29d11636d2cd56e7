// Counts a server's open connections, in order to limit them and to wait for the last one to close.
#ifndef COLCAST_SERVER_NET_OPEN_CONNECTIONS_H_
#define COLCAST_SERVER_NET_OPEN_CONNECTIONS_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>

namespace colcast::net {

// All methods may be called from any thread.
class OpenConnections {
 public:
  explicit OpenConnections(int max = std::numeric_limits<int>::max()) : max_(max) {}

  struct Leave {
    void operator()(OpenConnections* open) const { open->Remove(); }
  };
  // Held by a connection, which counts as open as long as this exists.
  using Place = std::unique_ptr<OpenConnections, Leave>;

  // Null if there is no room for another connection.
  Place Add() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (count_ >= max_) return nullptr;
    ++count_;
    return Place(this);
  }

  int count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }
  // False if connections are still open at `deadline`.
  bool WaitForNone(std::chrono::system_clock::time_point deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    return none_.wait_until(lock, deadline,
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ == 0; });
  }

 private:
  void Remove() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

  const int max_;
  mutable std::mutex mutex_;
  std::condition_variable none_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_OPEN_CONNECTIONS_H_
