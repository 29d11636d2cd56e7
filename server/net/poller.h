// The sockets, and the threads that wait for them.
#ifndef COLCAST_SERVER_NET_POLLER_H_
#define COLCAST_SERVER_NET_POLLER_H_

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/base/thread.h"
#include "server/net/hosts.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::net {

// A file descriptor to wait for.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // Receives epoll events such as EPOLLIN. May be called on several threads at once.
  virtual void Happened(uint32_t events) = 0;
  // Called about every second, to check for timeouts.
  virtual void PostTimer() {}
  // Called on any thread when room is needed for other clients.
  virtual void CloseAtOnce() {}
};

// Any number of threads may wait. Each event wakes the thread that began to wait last.
class Poller final : public scheduling::EventSource {
 public:
  explicit Poller(size_t max_unread_bytes_per_host = 32 << 20,
                  size_t max_body_bytes = size_t{2} << 30);
  ~Poller() override;

  // The hosts of the clients whose connections are polled.
  Hosts& hosts() { return hosts_; }

  // Watches `fd` for input and output, edge-triggered, until Remove(), and returns its number.
  uint64_t Add(int fd, std::shared_ptr<Pollable> pollable);
  // Reports the descriptor's readiness once more.
  void Again(int fd, uint64_t number);
  void Remove(int fd, uint64_t number);

  bool Poll(scheduling::Clock::time_point until) override;
  void Wake() override;

  std::vector<std::shared_ptr<Pollable>> All() const;
  template <typename T>
  std::vector<std::shared_ptr<T>> AllOf() const {
    std::vector<std::shared_ptr<T>> found;
    for (const auto& each : All()) {
      if (auto one = std::dynamic_pointer_cast<T>(each)) found.push_back(std::move(one));
    }
    return found;
  }
  // The number of polls so far, by all threads.
  int64_t turns() const { return turns_.load(std::memory_order_relaxed); }
  int waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kWake = 0;

  std::shared_ptr<Pollable> Find(uint64_t number) const;

  const int epoll_;
  const int wake_;
  std::atomic<int64_t> turns_{0};
  std::atomic<int> waiting_{0};
  Hosts hosts_;
  mutable std::mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = kWake;
  std::unordered_map<uint64_t, std::shared_ptr<Pollable>> pollables_ ABSL_GUARDED_BY(mutex_);
};

// A thread that waits for the sockets while all workers are busy, and once a second checks for
// connections that have waited too long.
class Standby {
 public:
  // `poller` must outlive this object.
  explicit Standby(Poller* poller);
  ~Standby() { ending_.Set(); }
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // For tests: checks all sockets for timeouts now, instead of once a second.
  void LookNow() { look_now_ = true; }

 private:
  void Run();

  Poller& poller_;
  std::atomic<bool> look_now_{false};
  StopFlag ending_;
  Thread thread_;
};

}  // namespace colcast::net

#endif  // COLCAST_SERVER_NET_POLLER_H_
