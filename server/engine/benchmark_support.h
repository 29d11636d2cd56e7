// Helpers shared by the engine's benchmarks.
#ifndef COLCAST_SERVER_ENGINE_BENCHMARK_SUPPORT_H_
#define COLCAST_SERVER_ENGINE_BENCHMARK_SUPPORT_H_

#include <errno.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "server/base/status.h"

namespace colcast::engine {

[[noreturn]] inline void Die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}

inline void Check(const Status& status) {
  if (!status.ok()) Die(status.message);
}

// CPU time of all threads of the process.
inline double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Die("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_BENCHMARK_SUPPORT_H_
