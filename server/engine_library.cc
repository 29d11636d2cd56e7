#include "server/engine_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace colcast {

Status OpenEngine(const engine::Options& options, std::unique_ptr<engine::Engine>* engine) {
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return NotFound("cannot tell where the executable lies: ", error.message());
  const std::string path = executable.parent_path() / "libcolcast_engine.so";
  // RTLD_LOCAL keeps TensorFlow's symbols from everyone else in the process.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotFound("cannot open the engine: ", dlerror());
  using CreateEngine = decltype(&ColcastCreateEngine);
  const auto create = reinterpret_cast<CreateEngine>(dlsym(library, "ColcastCreateEngine"));
  if (create == nullptr) return NotFound(path, " is not colcast's engine: ", dlerror());
  engine->reset(create(options));
  return OkStatus();
}

}  // namespace colcast
