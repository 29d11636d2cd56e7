#include "server/rpc/call.h"

namespace colcast::rpc {

using scheduling::Clock;

Clock::time_point ToSteady(std::chrono::system_clock::time_point deadline) {
  using std::chrono::system_clock;
  if (deadline == system_clock::time_point::max()) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(deadline - system_clock::now());
}

}  // namespace colcast::rpc
