#include "server/base/thread_limit.h"

#include <pthread.h>

#include <cstring>
#include <mutex>
#include <vector>

namespace colcast {
namespace {

void* WaitForRelease(void* held) {
  const std::lock_guard<std::mutex> lock(*static_cast<std::mutex*>(held));
  return nullptr;
}

}  // namespace

Status CheckThreadLimit(int count) {
  std::mutex held;
  std::vector<pthread_t> threads;
  int error = 0;
  held.lock();
  while (error == 0 && static_cast<int>(threads.size()) < count) {
    pthread_t thread{};
    error = pthread_create(&thread, nullptr, WaitForRelease, &held);
    if (error == 0) threads.push_back(thread);
  }
  held.unlock();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  if (error == 0) return OkStatus();
  return ResourceExhausted("the server needs about ", count, " threads and can make only ",
                           threads.size(), " (", std::strerror(error),
                           "): a limit of processes (ulimit -u, pids.max) or of address space "
                           "(ulimit -v) is too low");
}

}  // namespace colcast
