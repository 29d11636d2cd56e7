// Tries to load a model version in a separate process before the server loads it, because some
// files crash TensorFlow, which would end the whole server.
#ifndef COLCAST_SERVER_LOAD_CHECK_H_
#define COLCAST_SERVER_LOAD_CHECK_H_

#include <chrono>
#include <string>

#include "server/base/status.h"

namespace colcast {

// Runs this executable with this process's flags in a new process, which loads and warms up the
// version in `directory`, and waits until it ends. Returns
//   INTERNAL           if a signal ended the new process,
//   DEADLINE_EXCEEDED  if it was killed after `timeout`,
//   CANCELLED          if the server was asked to stop in the meantime.
// Otherwise returns OK, even if the load failed: the actual load that follows reports the error.
Status CheckLoadInOwnProcess(const std::string& directory, std::chrono::seconds timeout);

}  // namespace colcast

#endif  // COLCAST_SERVER_LOAD_CHECK_H_
