// Opens the engine library, the only part of the process that links TensorFlow.
#ifndef COLCAST_SERVER_ENGINE_LIBRARY_H_
#define COLCAST_SERVER_ENGINE_LIBRARY_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/engine/engine.h"

namespace colcast {

// The folder with this process's executable and the engines; empty if it cannot be determined.
std::filesystem::path ExecutableFolder();

// The TensorFlow releases for which `folder` has libraries libcolcast_engine-RELEASE.so, oldest
// first.
std::vector<std::string> EngineReleases(const std::filesystem::path& folder);

// Chooses the release in `releases` that equals `installed`. If `installed` is empty and there is
// only one release, chooses that one, because its engine may find TensorFlow by its own run path.
// Otherwise returns NOT_FOUND with the installed release, the supported releases, and the command
// that installs one.
Status ChooseEngine(const std::vector<std::string>& releases, const std::string& installed,
                    std::string* chosen);

// A phrase for messages: "needs TensorFlow 2.20.0 or 2.21.0: pip install ...".
std::string NeededTensorFlow(const std::vector<std::string>& releases);

// Opens the engine for the installed TensorFlow, from the executable's directory. The library stays
// open until the process ends. If the library or TensorFlow is missing, returns NOT_FOUND with the
// linker's reason, the releases found and needed, and the command that installs one.
Status OpenEngine(const engine::Options& options, std::unique_ptr<engine::Engine>* engine);

}  // namespace colcast

#endif  // COLCAST_SERVER_ENGINE_LIBRARY_H_
