// Warnings for the operator that are not repeated at every poll.
#ifndef COLCAST_SERVER_MODELS_WARNINGS_H_
#define COLCAST_SERVER_MODELS_WARNINGS_H_

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "server/models/model_config.h"
#include "server/models/version_directory.h"

namespace colcast::models {

// A sentence for each version that `model` wants or has but that cannot serve; `listing` lists its
// base path.
std::vector<std::string> VersionWarnings(const ModelConfig& model, const BasePathListing& listing);

class WarningLog {
 public:
  using Clock = std::chrono::steady_clock;

  // Logs the warnings that were not among the last ones about `subject`. Persistent ones are logged
  // again after one minute, two, four and so on.
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
