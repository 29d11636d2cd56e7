// Calls functions periodically, one at a time, on one low-priority thread.
#ifndef COLCAST_SERVER_TABLES_POLL_THREAD_H_
#define COLCAST_SERVER_TABLES_POLL_THREAD_H_

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
class PollThread {
 public:
  // The poller shared by all users of this library. It exists while anyone holds it.
  static std::shared_ptr<PollThread> Shared();

  PollThread() = default;
  ~PollThread();

  // Destroying a job stops its calls and waits for a running one. The poller must outlive the job.
  using Job = std::unique_ptr<void, std::function<void(void*)>>;

  // Calls `poll` every `wait`, until `*job` is destroyed. Returns RESOURCE_EXHAUSTED if the thread
  // cannot be started.
  Status Add(std::chrono::milliseconds wait, std::function<void()> poll, Job* job);

  // Makes the thread call all functions now, without waiting for them to return.
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

#endif  // COLCAST_SERVER_TABLES_POLL_THREAD_H_
