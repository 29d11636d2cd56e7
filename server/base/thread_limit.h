// Checks whether the process may create the threads that it will need.
#ifndef COLCAST_SERVER_BASE_THREAD_LIMIT_H_
#define COLCAST_SERVER_BASE_THREAD_LIMIT_H_

#include "server/base/status.h"

namespace colcast {

// The maximum number of threads of one kind that a flag or file may ask for.
inline constexpr int kMostThreads = 4096;

// RESOURCE_EXHAUSTED unless `count` more threads can be created within the limits on processes and
// address space. Checked beforehand, because TensorFlow aborts the process if it cannot create one
// of its threads.
Status CheckThreadLimit(int count);

}  // namespace colcast

#endif  // COLCAST_SERVER_BASE_THREAD_LIMIT_H_
