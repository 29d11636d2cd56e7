// Warnings for the operator, which are not repeated at every poll.
#ifndef COLCAST_SERVER_MODELS_WARNINGS_H_
#define COLCAST_SERVER_MODELS_WARNINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/models/model_config.h"
#include "server/models/version_directory.h"

namespace colcast::models {

// Warnings about versions ignored in or missing from `listing`, which lists `model`'s base path.
// `serving` are the versions that serve.
std::vector<std::string> VersionWarnings(const ModelConfig& model, const BasePathListing& listing,
                                         const std::vector<int64_t>& serving);

class WarningLog {
 public:
  // Logs the warnings that were not in the previous call's list for `subject`.
  void Log(const std::string& subject, const std::vector<std::string>& warnings);

 private:
  std::map<std::string, std::vector<std::string>> logged_;  // by subject
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_WARNINGS_H_
