// Runs independent jobs on all cores. An exception from a job is rethrown to the caller.
#ifndef COLCAST_SERVER_ENGINE_IN_PARALLEL_H_
#define COLCAST_SERVER_ENGINE_IN_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/base/thread.h"

namespace colcast::engine {

inline void InParallel(size_t count, absl::FunctionRef<void(size_t)> job) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) job(i);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      thrown = std::current_exception();
    }
  };
  std::vector<Thread> threads;
  const size_t most = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 1; i < most; ++i) {
    Thread thread;
    // If no thread can be started, the running ones do the remaining jobs.
    if (!StartThread("loading a graph", work, &thread).ok()) break;
    threads.push_back(std::move(thread));
  }
  work();
  threads.clear();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_IN_PARALLEL_H_
