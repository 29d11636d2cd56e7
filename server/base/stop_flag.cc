#include "server/base/stop_flag.h"

namespace colcast {

void StopFlag::Set() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
  }
  changed_.notify_all();
}

bool StopFlag::IsSet() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return set_;
}

bool StopFlag::WaitFor(Clock::duration wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, wait,
                           [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return set_; });
}

}  // namespace colcast
