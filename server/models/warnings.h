// Warnings for the operator, which are not repeated at every poll.
#ifndef COLCAST_SERVER_MODELS_WARNINGS_H_
#define COLCAST_SERVER_MODELS_WARNINGS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/models/model_config.h"
#include "server/models/version_directory.h"

namespace colcast::models {

// Warnings about versions of `model`: those ignored in `listing`, which lists its base path, and
// those that are missing there. `serving` are the versions that serve.
std::vector<std::string> VersionWarnings(const ModelConfig& model, const BasePathListing& listing,
                                         const std::vector<int64_t>& serving);

class WarningLog {
 public:
  using Clock = std::chrono::steady_clock;

  // Logs the warnings that were not already among the previous ones about `subject`. Persistent
  // warnings are repeated after one minute, two, four and so on.
  void Log(const std::string& subject, const std::vector<std::string>& warnings,
           Clock::time_point now = Clock::now());

 private:
  struct Pause {
    Clock::duration length{};
    Clock::time_point until = Clock::time_point::min();
  };
  std::map<std::string, std::map<std::string, Pause>> logged_;  // by subject, then by warning
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_WARNINGS_H_
