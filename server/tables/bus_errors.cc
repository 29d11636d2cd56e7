#include "server/tables/bus_errors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace colcast::tables {
namespace {

// Read by the signal handler, which must not take a lock. `size` is written last and cleared first.
struct Range {
  std::atomic<uintptr_t> begin{0};
  std::atomic<size_t> size{0};  // 0 if unused
  std::atomic<std::atomic<bool>*> failed{nullptr};
};

Range ranges[BusErrorGuard::kMost];
std::mutex ranges_mutex;  // guards writes
struct sigaction previous;

bool Replace(uintptr_t address) {
  for (Range& range : ranges) {
    const size_t size = range.size.load(std::memory_order_acquire);
    if (address - range.begin.load(std::memory_order_relaxed) >= size) continue;
    const uintptr_t page = address & ~(static_cast<uintptr_t>(getpagesize()) - 1);
    range.failed.load(std::memory_order_relaxed)->store(true);
    return mmap(reinterpret_cast<void*>(page), getpagesize(), PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_ours = Replace(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = error;
  if (is_ours) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    sigaction(SIGBUS, &previous, nullptr);
    raise(signal);  // ends the process after this handler returns
  }
}

void Install() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous);
}

}  // namespace

BusErrorGuard::BusErrorGuard(const void* begin, size_t size, std::atomic<bool>* failed) {
  static std::once_flag installed;
  std::call_once(installed, Install);
  const std::lock_guard<std::mutex> lock(ranges_mutex);
  while (slot_ < kMost && ranges[slot_].size.load(std::memory_order_relaxed) != 0) ++slot_;
  if (slot_ == kMost) return;
  ranges[slot_].begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_relaxed);
  ranges[slot_].failed.store(failed, std::memory_order_relaxed);
  ranges[slot_].size.store(size, std::memory_order_release);
}

BusErrorGuard::~BusErrorGuard() {
  if (slot_ < kMost) ranges[slot_].size.store(0, std::memory_order_release);
}

}  // namespace colcast::tables
