// Which engine library fits the installed TensorFlow; each is built for one release of it.
#ifndef COLCAST_SERVER_ENGINE_CHOICE_H_
#define COLCAST_SERVER_ENGINE_CHOICE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "server/base/status.h"

namespace colcast {

// The folder of this process's executable, where the engines are; empty if it cannot be read.
std::filesystem::path ExecutableFolder();

// The TensorFlow releases that the libraries libcolcast_engine-RELEASE.so in `folder` are for,
// oldest first.
std::vector<std::string> EngineReleases(const std::filesystem::path& folder);

// Chooses among `releases` the one that is `installed`. Without an installed one, that is where
// only the engine knows the path of its TensorFlow, a single engine is chosen. NOT_FOUND names what
// is there, what is needed and the command that installs it.
Status ChooseEngine(const std::vector<std::string>& releases, const std::string& installed,
                    std::string* chosen);

// "needs TensorFlow 2.20.0 or 2.21.0: pip install ...", for messages.
std::string NeededTensorFlow(const std::vector<std::string>& releases);

}  // namespace colcast

#endif  // COLCAST_SERVER_ENGINE_CHOICE_H_
