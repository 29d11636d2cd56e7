// The open connections of a server: how many there may be, and how they end.
#ifndef COLCAST_SERVER_HTTP_CONNECTIONS_H_
#define COLCAST_SERVER_HTTP_CONNECTIONS_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace colcast::http {

class Connection {
 public:
  virtual ~Connection() = default;
  // Closes it now, or after the answer if a request is in flight.
  virtual void Stop() = 0;
  // Closes it whatever is in flight and, if `log`, says in the log what was.
  virtual void Cut(bool log) = 0;
};

class Connections {
 public:
  explicit Connections(size_t max) : max_(max) {}

  // A place in the list; destroyed after the connection's socket, it makes room for another one.
  class Place {
   public:
    explicit Place(Connections* connections) : connections_(connections) {}
    ~Place() { connections_->Remove(at_); }
    Place(const Place&) = delete;

    // False once the connections have been stopped.
    bool Hold(std::weak_ptr<Connection> connection) {
      std::lock_guard<std::mutex> lock(connections_->mutex_);
      *at_ = std::move(connection);
      return !connections_->stopped_;
    }
    bool stopped() const {
      std::lock_guard<std::mutex> lock(connections_->mutex_);
      return connections_->stopped_;
    }
    bool draining() const {
      std::lock_guard<std::mutex> lock(connections_->mutex_);
      return connections_->draining_ || connections_->stopped_;
    }

   private:
    friend class Connections;
    Connections* const connections_;
    std::list<std::weak_ptr<Connection>>::iterator at_;
  };

  // Null if there is no room, or they have been stopped.
  std::unique_ptr<Place> Add() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_ || open_.size() >= max_) return nullptr;
    auto place = std::make_unique<Place>(this);
    place->at_ = open_.emplace(open_.end());
    return place;
  }

  // From now on connections are to close after their next answer.
  void Drain() {
    std::lock_guard<std::mutex> lock(mutex_);
    draining_ = true;
  }

  // Stops every connection and returns when the last one is gone. What has not ended by `deadline`
  // is cut; a request that a handler still works on is gone when it has been answered.
  void StopAll(std::chrono::system_clock::time_point deadline) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    for (const auto& connection : Open()) connection->Stop();
    const auto all_gone = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_.empty(); };
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (all_gone_.wait_until(lock, deadline, all_gone)) return;
    }
    int lines = kMaxLogLines;
    for (const auto& connection : Open()) connection->Cut(lines-- > 0);
    std::unique_lock<std::mutex> lock(mutex_);
    all_gone_.wait(lock, all_gone);
  }

 private:
  static constexpr int kMaxLogLines = 100;

  std::vector<std::shared_ptr<Connection>> Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Connection>> open;
    for (const auto& weak : open_) {
      if (std::shared_ptr<Connection> connection = weak.lock()) open.push_back(connection);
    }
    return open;
  }

  void Remove(std::list<std::weak_ptr<Connection>>::iterator at) {
    std::lock_guard<std::mutex> lock(mutex_);
    open_.erase(at);
    if (open_.empty()) all_gone_.notify_all();
  }

  const size_t max_;
  std::mutex mutex_;
  std::condition_variable all_gone_;
  std::list<std::weak_ptr<Connection>> open_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_CONNECTIONS_H_
