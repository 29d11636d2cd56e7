// Opens the engine library, the only part of the process that links TensorFlow.
#ifndef COLCAST_SERVER_ENGINE_LIBRARY_H_
#define COLCAST_SERVER_ENGINE_LIBRARY_H_

#include <memory>

#include "server/base/status.h"
#include "server/engine/engine.h"

namespace colcast {

// Opens the engine for the installed TensorFlow, from the executable's directory. The library stays
// open as long as the process runs. NOT_FOUND, if the library or TensorFlow is missing, with the
// linker's reason, the releases found and needed, and the command that installs one.
Status OpenEngine(const engine::Options& options, std::unique_ptr<engine::Engine>* engine);

}  // namespace colcast

#endif  // COLCAST_SERVER_ENGINE_LIBRARY_H_
