// Tries to load a version of a model, or an op library, in a separate process before the server
// loads it: some files crash TensorFlow, and would take the whole server down.
#ifndef COLCAST_SERVER_LOAD_CHECK_H_
#define COLCAST_SERVER_LOAD_CHECK_H_

#include <chrono>
#include <string>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/models/loader.h"

namespace colcast {

// Runs this executable with this process's flags in a new process, which loads and warms up the
// version in `directory`, and waits until it ends. Returns INTERNAL if a signal ended it,
// DEADLINE_EXCEEDED if it was killed after `timeout`, CANCELLED if the server was asked to stop in
// the meantime, FAILED_PRECONDITION if files of the server's package were replaced since it
// started. Returns OK otherwise: other errors are reported by the actual load that follows.
Status CheckLoadInOwnProcess(const std::string& directory, std::chrono::seconds timeout);

// Like CheckLoadInOwnProcess(), for an op library, and for at most one minute. The error is
// INVALID_ARGUMENT and names it.
Status CheckOpLibraryInOwnProcess(const std::string& path, std::chrono::seconds timeout);

// Makes this process end with its parent. Call it first in a process that checks a load.
void EndWithParent();

// What a process that checks a load does: loads a version.
Status RunLoadCheck(const std::string& directory, const models::Loader::Options& options,
                    const engine::Engine& engine);

}  // namespace colcast

#endif  // COLCAST_SERVER_LOAD_CHECK_H_
