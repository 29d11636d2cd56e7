#include "server/engine_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace colcast {
namespace {

// What TensorFlow's library in this folder says of itself; "none" if it cannot be loaded.
std::string VersionIn(const std::filesystem::path& folder) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", /*overwrite=*/1);  // it logs as it is opened
  void* const library = dlopen((folder / "libtensorflow_cc.so.2").c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "none";
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "TF_Version"));
  return version == nullptr ? "another" : version();
}

// Why the engine cannot be opened, and what mends it. `said` is the linker's reason.
Status NoEngine(const std::string& said, const std::filesystem::path& executable) {
  const std::string found = VersionIn(executable.parent_path() / "../../tensorflow");
  return NotFound("cannot open the engine: ", said, "; it needs TensorFlow ",
                  COLCAST_TENSORFLOW_VERSION, ", beside the server lies ", found,
                  ": pip uninstall -y tensorflow; pip install --force-reinstall --no-deps "
                  "tensorflow-cpu==",
                  COLCAST_TENSORFLOW_VERSION);
}

}  // namespace

Status OpenEngine(const engine::Options& options, std::unique_ptr<engine::Engine>* engine) {
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return NotFound("cannot tell where the executable lies: ", error.message());
  const std::string path = executable.parent_path() / "libcolcast_engine.so";
  // RTLD_LOCAL keeps TensorFlow's symbols from everyone else in the process.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NoEngine(dlerror(), executable);
  using CreateEngine = decltype(&ColcastCreateEngine);
  const auto create = reinterpret_cast<CreateEngine>(dlsym(library, "ColcastCreateEngine"));
  if (create == nullptr) return NotFound(path, " is not colcast's engine: ", dlerror());
  engine->reset(create(options));
  return OkStatus();
}

}  // namespace colcast
