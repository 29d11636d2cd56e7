// Creates threads, lowers their priority, and stops them.
#ifndef COLCAST_SERVER_BASE_THREAD_H_
#define COLCAST_SERVER_BASE_THREAD_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "server/base/status.h"

namespace colcast {

std::chrono::nanoseconds CpuTimeOfThisThread();

// Permanently lowers the CPU and disk read priority of this thread and of threads that it starts
// later. (On Linux, each thread has its own priority.) Does nothing if the kernel refuses. `nice`
// is a nice(7) value of at most 19. At 10, a thread that shares a core with a busy worker still
// gets a tenth of it. That is enough to load a version on an overloaded server, which may need
// exactly that version.
void LowerThisThreadsPriority(int nice = 10);

// Tells a periodic thread to end. All methods may be called from any thread.
class StopFlag {
 public:
  using Clock = std::chrono::steady_clock;

  // Cannot be undone.
  void Set();
  bool IsSet() const;

  // Waits until the flag is set, but at most for `wait`. Returns whether it is set.
  bool WaitFor(Clock::duration wait);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

// Runs `body`. Turns an exception into an error that names `what`: RESOURCE_EXHAUSTED if memory or
// threads run out, otherwise INTERNAL.
Status RunCaught(const std::string& what, const std::function<Status()>& body);

// A thread that its destructor joins.
class Thread {
 public:
  Thread() = default;
  // Like StartThread(), but throws if the system refuses the thread. For members of objects that
  // are created within RunCaught(), such as the server or a model version; RunCaught() turns the
  // exception into an error that names `what`.
  Thread(const std::string& what, std::function<void()> body);
  ~Thread();
  Thread(Thread&&) = default;
  Thread& operator=(Thread&&) = default;

  bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }

 private:
  std::thread thread_;
};

// Runs `body` in a new thread. Returns RESOURCE_EXHAUSTED if the system refuses the thread. If
// `body` throws, logs the exception and runs `body` again after a short pause.
Status StartThread(const std::string& what, std::function<void()> body, Thread* thread);

// The largest number of threads of one kind that a flag or file may request.
inline constexpr int kMostThreads = 4096;

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_H_
