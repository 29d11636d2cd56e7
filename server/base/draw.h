// Random samples of requests.
#ifndef COLCAST_SERVER_BASE_DRAW_H_
#define COLCAST_SERVER_BASE_DRAW_H_

#include <random>

namespace colcast {

// True with the probability `share`, from 0 (never) to 1 (always).
inline bool Draw(double share) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::uniform_real_distribution<double>()(generator) < share;
}

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_DRAW_H_
