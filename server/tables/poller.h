// Calls functions at intervals, one after the other, on one thread of low priority.
#ifndef COLCAST_SERVER_TABLES_POLLER_H_
#define COLCAST_SERVER_TABLES_POLLER_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "server/base/status.h"
#include "server/base/thread.h"

namespace colcast::tables {

// All methods may be called from any thread, but not from a polled function.
class Poller {
 public:
  // The poller that this library's users share; its thread lives as long as one of them.
  static std::shared_ptr<Poller> Shared();

  Poller() = default;
  ~Poller();

  // Destroying it ends the calls, and waits for one that is running. The poller must outlive it.
  using Job = std::unique_ptr<void, std::function<void(void*)>>;

  // Calls `poll` every `wait`. Returns RESOURCE_EXHAUSTED if the thread cannot be started.
  Status Add(std::chrono::milliseconds wait, std::function<void()> poll, Job* job);

  // Makes all calls now.
  void PollNow();

 private:
  using Clock = std::chrono::steady_clock;
  struct Polled {
    Clock::duration wait;
    std::function<void()> poll;
    Clock::time_point next;
  };

  void Run();
  void Remove(const Polled* polled);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Polled> polled_ ABSL_GUARDED_BY(mutex_);
  const Polled* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace colcast::tables

#endif  // COLCAST_SERVER_TABLES_POLLER_H_
