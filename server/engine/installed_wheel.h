// Finds the wheel that installed a file, from the records that pip keeps beside the packages.
#ifndef COLCAST_SERVER_ENGINE_INSTALLED_WHEEL_H_
#define COLCAST_SERVER_ENGINE_INSTALLED_WHEEL_H_

#include <filesystem>
#include <string>

namespace colcast::engine {

struct InstalledWheel {
  std::string name;     // e.g. "tensorflow_decision_forests"; empty if no wheel has the file
  std::string version;  // e.g. "1.12.0"
  // Its requirement, e.g. "tensorflow==2.19.0"; empty if it has none or accepts any.
  std::string tensorflow;
};

// Reads the *.dist-info folders beside the file's package:
// https://packaging.python.org/en/latest/specifications/recording-installed-packages
InstalledWheel WheelOf(const std::filesystem::path& file);

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_INSTALLED_WHEEL_H_
