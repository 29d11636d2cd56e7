// Runs independent jobs on all cores.
#ifndef COLCAST_SERVER_ENGINE_IN_PARALLEL_H_
#define COLCAST_SERVER_ENGINE_IN_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/base/thread.h"

namespace colcast::engine {

inline void InParallel(size_t count, absl::FunctionRef<void(size_t)> job) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::thread> threads;
  const size_t most = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 1; i < most; ++i) {
    std::thread thread;
    // The threads already running take over its jobs.
    if (!StartThread("loading a graph", work, &thread).ok()) break;
    threads.push_back(std::move(thread));
  }
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_IN_PARALLEL_H_
