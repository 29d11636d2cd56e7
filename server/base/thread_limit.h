// Whether the process may make the threads that it will need.
#ifndef COLCAST_SERVER_BASE_THREAD_LIMIT_H_
#define COLCAST_SERVER_BASE_THREAD_LIMIT_H_

#include "server/base/status.h"

namespace colcast {

// No flag and no file may ask for more threads of a kind.
inline constexpr int kMostThreads = 4096;

// RESOURCE_EXHAUSTED unless `count` threads can be made beside those that there are: a limit of
// processes or of address space is reached. TensorFlow ends the process where one of its own cannot
// be made.
Status CheckThreadLimit(int count);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_LIMIT_H_
