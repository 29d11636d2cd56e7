#include "server/base/stop_flag.h"

namespace colcast {

void StopFlag::Set() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
  }
  changed_.notify_all();
}

void StopFlag::Wake() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

bool StopFlag::IsSet() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return set_;
}

bool StopFlag::WaitUntil(Clock::time_point time) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_until(lock, time,
                      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return set_ || woken_; });
  woken_ = false;
  return set_;
}

}  // namespace colcast
