// Tells a thread that works periodically to end.
#ifndef COLCAST_SERVER_BASE_STOP_FLAG_H_
#define COLCAST_SERVER_BASE_STOP_FLAG_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace colcast {

// All methods may be called from any thread.
class StopFlag {
 public:
  using Clock = std::chrono::steady_clock;

  // Cannot be undone.
  void Set();
  bool IsSet() const;

  // Ends a wait early: the present one, else the next.
  void Wake();

  // Waits until it is set, the time has come or Wake() was called: true if it is set.
  bool WaitUntil(Clock::time_point time);
  bool WaitFor(Clock::duration wait) { return WaitUntil(Clock::now() + wait); }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_STOP_FLAG_H_
