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

  // Ends the current wait early, or the next one if no thread waits.
  void Wake();

  // Waits until the flag is set, `time` has come, or Wake() was called. Returns whether the flag is
  // set.
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
