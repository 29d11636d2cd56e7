// The wheel that a file was installed from, as pip records it beside the packages.
#ifndef COLCAST_SERVER_ENGINE_INSTALLED_WHEEL_H_
#define COLCAST_SERVER_ENGINE_INSTALLED_WHEEL_H_

#include <filesystem>
#include <string>

namespace colcast::engine {

struct InstalledWheel {
  std::string name;        // "tensorflow_decision_forests"; empty: no wheel has the file
  std::string version;     // "1.12.0"
  std::string tensorflow;  // what it requires: "tensorflow==2.19.0"; empty: any or none
};

// Reads the *.dist-info folders beside the file's package.
// https://packaging.python.org/en/latest/specifications/recording-installed-packages
InstalledWheel WheelOf(const std::filesystem::path& file);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_INSTALLED_WHEEL_H_
