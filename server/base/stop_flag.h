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

  // Waits until the flag is set, at most for `wait`. Returns whether it is set.
  bool WaitFor(Clock::duration wait);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_STOP_FLAG_H_
