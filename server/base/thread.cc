#include "server/base/thread.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "server/base/log.h"

namespace colcast {

std::chrono::nanoseconds CpuTimeOfThisThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}
namespace {

// The longest time that a ready thread has to wait for this one. From Linux 6.6 on, a running
// thread keeps its core for about 3 ms, whatever its nice value, unless it asks for less, as
// threads can from 6.12 on. Before 6.6, a nice thread gave way immediately.
constexpr int kSliceNanoseconds = 100'000;

// From linux/ioprio.h: the default class and its lowest level.
constexpr int kIoPrioWhoProcess = 1;
constexpr int kIoPrioClassBestEffort = 2;
constexpr int kIoPrioClassShift = 13;
constexpr int kIoPrioLowest = 7;

// The kernel's sched_attr. Its header, linux/sched/types.h, cannot be included together with the C
// library's sched.h.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_BATCH;  // a thread that becomes ready does not preempt others
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = kSliceNanoseconds;
  uint64_t deadline = 0;
  uint64_t period = 0;
};

// The pause after an exception, so that repeated exceptions do not keep a core busy.
constexpr std::chrono::milliseconds kMoment{200};

}  // namespace

void LowerThisThreadsPriority(int nice) {
  SchedulingAttributes attributes;
  attributes.nice = nice;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
  syscall(SYS_ioprio_set, kIoPrioWhoProcess, 0,
          kIoPrioClassBestEffort << kIoPrioClassShift | kIoPrioLowest);
}

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

Status RunCaught(const std::string& what, const std::function<Status()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(what, ": out of memory");
  } catch (const std::system_error& error) {
    const bool is_limit = error.code() == std::errc::resource_unavailable_try_again;
    return Error(is_limit ? StatusCode::kResourceExhausted : StatusCode::kInternal, what, ": ",
                 error.what());
  } catch (const std::exception& error) {
    return Internal(what, ": ", error.what());
  }
}

Thread::Thread(const std::string& what, std::function<void()> body) try
    : thread_([what, body = std::move(body)] {
        const auto run = [&] {
          body();
          return OkStatus();
        };
        for (Status status = RunCaught(what, run); !status.ok(); status = RunCaught(what, run)) {
          LogError(status.message + "; trying again");
          std::this_thread::sleep_for(kMoment);
        }
      }) {
} catch (const std::system_error& error) {
  throw std::system_error(error.code(), "no thread for " + what);
}

Thread::~Thread() {
  if (joinable()) join();
}

Status StartThread(const std::string& what, std::function<void()> body, Thread* thread) {
  try {
    *thread = Thread(what, std::move(body));
  } catch (const std::exception& error) {
    return ResourceExhausted(error.what());
  }
  return OkStatus();
}

}  // namespace colcast
