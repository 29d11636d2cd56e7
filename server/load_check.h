// Tries to load a model version or an op library in a separate process before the server loads it,
// because some files crash TensorFlow, which would end the whole server.
#ifndef COLCAST_SERVER_LOAD_CHECK_H_
#define COLCAST_SERVER_LOAD_CHECK_H_

#include <chrono>
#include <string>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/models/loader.h"

namespace colcast {

// The exit code of a separate process that cannot create the threads that a load needs.
inline constexpr int kTooFewThreads = 75;

// Runs this executable with this process's flags in a new process, which loads and warms up the
// version in `directory`, and waits until it ends. Returns
//   INTERNAL             if a signal ended the new process,
//   DEADLINE_EXCEEDED    if it was killed after `timeout`,
//   CANCELLED            if the server was asked to stop in the meantime,
//   RESOURCE_EXHAUSTED   if it cannot create the threads that a load needs,
//   FAILED_PRECONDITION  if files of the server's package were replaced since the server started.
// Otherwise returns OK, even if the load failed: the actual load that follows reports the error.
Status CheckLoadInOwnProcess(const std::string& directory, std::chrono::seconds timeout);

// Like CheckLoadInOwnProcess(), for the op library at `path`, and for at most one minute. Errors
// other than CANCELLED are INVALID_ARGUMENT with the path.
Status CheckOpLibraryInOwnProcess(const std::string& path, std::chrono::seconds timeout);

// Makes this process end with its parent. Call it first in a process that checks a load.
void EndWithParent();

// Loads a version. Runs in the new process of CheckLoadInOwnProcess().
Status RunLoadCheck(const std::string& directory, const models::Loader::Options& options,
                    const engine::Engine& engine);

}  // namespace colcast

#endif  // COLCAST_SERVER_LOAD_CHECK_H_
