#include "server/models/unloader.h"

#include <absl/base/thread_annotations.h>
#include <absl/cleanup/cleanup.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "server/base/thread.h"

namespace colcast::models {

// The servables waiting to be destroyed.
class Unloader::Queue {
 public:
  struct Item {
    std::shared_ptr<const Servable> servable;
    std::function<void()> on_destroyed;
  };

  void Push(Item item) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_) return;  // `item` is destroyed after the lock is released
    items_.push_back(std::move(item));
    changed_.notify_one();
  }

  void Close() {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  // Destroys objects until the queue is closed and empty.
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return closed_ || !items_.empty();
      });
      if (items_.empty()) return;
      Item item = std::move(items_.front());
      items_.pop_front();
      lock.unlock();
      item.servable.reset();
      item.on_destroyed();
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
};

Unloader::Unloader(int num_threads) : queue_(std::make_shared<Queue>()) {
  absl::Cleanup close = [this] { queue_->Close(); };
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back("unloading", [queue = queue_] {
      LowerThisThreadsPriority();
      queue->Work();
    });
  }
  std::move(close).Cancel();
}

Unloader::~Unloader() { queue_->Close(); }

std::shared_ptr<const Servable> Unloader::Share(std::shared_ptr<const Servable> servable,
                                                std::function<void()> on_destroyed) {
  const Servable* const address = servable.get();
  return {address,
          [queue = queue_, item = Queue::Item{std::move(servable), std::move(on_destroyed)}](
              const Servable*) mutable { queue->Push(std::move(item)); }};
}

}  // namespace colcast::models
