// Threads: creating them, their priority, and stopping them.
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

// Permanently lowers the priority of this thread, and of threads that it starts later, for the CPU
// and for reading files. (On Linux, each thread has a priority of its own.) Does nothing if the
// kernel refuses. `nice` is a nice(7) value of at most 19. With 10, a thread beside a busy worker
// still gets a tenth of a core, enough to finish loading a version on an overloaded server, which
// may need exactly that version.
void LowerThisThreadsPriority(int nice = 10);

// Tells a periodic thread to end.
//
// All methods may be called from any thread.
class StopFlag {
 public:
  using Clock = std::chrono::steady_clock;

  // Cannot be undone.
  void Set();
  bool IsSet() const;

  // Waits until the flag is set, at most for `wait`. Returns whether it is set.
  bool WaitFor(Clock::duration wait);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

// Turns an exception that leaves `body` into an error that names `what`: RESOURCE_EXHAUSTED if
// memory or threads are exhausted, otherwise INTERNAL.
Status RunCaught(const std::string& what, const std::function<Status()>& body);

// A thread that is joined by the destructor.
class Thread {
 public:
  Thread() = default;
  // Like StartThread(), but throws if the thread is refused; RunCaught() turns that exception into
  // an error that names `what`. For members of objects that are created within RunCaught(), such as
  // the server or a model version.
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

// Runs `body` in a new thread. Returns RESOURCE_EXHAUSTED if the system allows no more threads. An
// exception is logged, and `body` runs again after a short pause.
Status StartThread(const std::string& what, std::function<void()> body, Thread* thread);

// The maximum number of threads of one kind that a flag or file may ask for.
inline constexpr int kMostThreads = 4096;

// Returns RESOURCE_EXHAUSTED unless `count` more threads can be created within the limits on
// processes and address space. Checked beforehand, because TensorFlow aborts the process if it
// cannot create one of its threads.
Status CheckThreadLimit(int count);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_H_
