// Random samples of requests.
#ifndef COLCAST_SERVER_BASE_DRAW_H_
#define COLCAST_SERVER_BASE_DRAW_H_

#include <random>

namespace colcast {

// Returns true with probability `share`, between 0 (never) and 1 (always).
inline bool Draw(double share) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::uniform_real_distribution<double>()(generator) < share;
}

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_DRAW_H_
