#include "server/engine_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace colcast {

namespace {

constexpr std::string_view kPrefix = "libcolcast_engine-";

}  // namespace

std::filesystem::path ExecutableFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

std::vector<std::string> EngineReleases(const std::filesystem::path& folder) {
  std::vector<std::string> releases;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().stem();
    if (name.rfind(kPrefix, 0) == 0) releases.push_back(name.substr(kPrefix.size()));
  }
  std::sort(releases.begin(), releases.end());
  return releases;
}

std::string NeededTensorFlow(const std::vector<std::string>& releases) {
  if (releases.empty()) return "there is no libcolcast_engine-*.so beside the executable";
  std::string needed = "the server needs TensorFlow ";
  for (const std::string& release : releases) {
    needed += (&release == &releases.front() ? "" : " or ") + release;
  }
  // Both tensorflow and tensorflow-cpu may be installed. They overwrite each other's files, so
  // removing one damages the other; the command removes both.
#ifdef __aarch64__
  const std::string name = "tensorflow";  // there is no tensorflow-cpu for ARM64
#else
  const std::string name = "tensorflow-cpu";
#endif
  return needed + ": pip uninstall -y tensorflow tensorflow-cpu; pip install " + name +
         "==" + releases.back();
}

Status ChooseEngine(const std::vector<std::string>& releases, const std::string& installed,
                    std::string* chosen) {
  if (installed.empty() && releases.size() == 1) {
    *chosen = releases.front();
    return OkStatus();
  }
  if (std::find(releases.begin(), releases.end(), installed) == releases.end()) {
    return NotFound("found ", installed.empty() ? "no TensorFlow" : "TensorFlow " + installed, "; ",
                    NeededTensorFlow(releases));
  }
  *chosen = installed;
  return OkStatus();
}

namespace {

// Opens a library with its symbols hidden from the rest of the process. TensorFlow 2.21 logs while
// it is being opened, before TF_CPP_MIN_LOG_LEVEL takes effect, so standard error is redirected
// meanwhile.
void* OpenLibrary(const std::filesystem::path& path) {
  const int standard_error = dup(STDERR_FILENO);
  if (const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC); nothing >= 0) {
    dup2(nothing, STDERR_FILENO);
    close(nothing);
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (standard_error >= 0) dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  return library;
}

// The TensorFlow release beside the executable, as in the image, or in the folder where pip
// installs it; empty if there is none.
std::string InstalledTensorFlow(const std::filesystem::path& executable_folder) {
  for (const char* const place : {"", "../../tensorflow"}) {
    const std::filesystem::path path = executable_folder / place / "libtensorflow_cc.so.2";
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    void* const library = OpenLibrary(path);  // stays open, because the engine uses it
    if (library == nullptr) return std::string("that cannot be loaded: ") + dlerror();
    const auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "TF_Version"));
    return version == nullptr ? "without a version" : version();
  }
  return {};
}

}  // namespace

Status OpenEngine(const engine::Options& options, std::unique_ptr<engine::Engine>* engine) {
  const std::filesystem::path folder = ExecutableFolder();
  const std::vector<std::string> releases = EngineReleases(folder);
  std::string release;
  if (Status status = ChooseEngine(releases, InstalledTensorFlow(folder), &release); !status.ok()) {
    return status;
  }
  const std::string path = folder / ("libcolcast_engine-" + release + ".so");
  void* const library = OpenLibrary(path);
  if (library == nullptr) {
    return NotFound("cannot open the engine: ", dlerror(), "; ", NeededTensorFlow(releases));
  }
  using CreateEngine = decltype(&ColcastCreateEngine);
  const auto create = reinterpret_cast<CreateEngine>(dlsym(library, "ColcastCreateEngine"));
  if (create == nullptr) return NotFound(path, " is not colcast's engine: ", dlerror());
  engine->reset(create(options));
  return OkStatus();
}

}  // namespace colcast
