#include "server/models/warnings.h"

#include <algorithm>

#include "server/base/log.h"
#include "server/models/version_directory.h"

namespace colcast::models {

std::vector<std::string> VersionWarnings(const ModelConfig& model, const BasePathListing& listing,
                                         const std::vector<int64_t>& serving) {
  std::vector<std::string> warnings = listing.warnings;
  if (listing.versions.empty()) {
    warnings.push_back(
        (listing.readable ? "no version under " + model.base_path + " yet"
                          : model.base_path + " is not a readable directory") +
        " (a version is a directory with a numeric name that contains a saved_model.pb" +
        (listing.is_version ? "; this path is itself a version: use its parent directory" : "") +
        (listing.unnumbered.empty() ? "" : "; " + listing.unnumbered.front() + " is not a number") +
        "); " +
        (serving.empty() ? "waiting for one"
                         : "version " + std::to_string(serving.back()) + " continues to serve"));
    return warnings;
  }
  for (const int64_t version : MissingVersions(model.policy, listing.versions)) {
    warnings.push_back("version " + std::to_string(version) +
                       ", which the version policy requests, is not under " + model.base_path);
  }
  return warnings;
}

void WarningLog::Log(const std::string& subject, const std::vector<std::string>& warnings) {
  std::vector<std::string>& before = logged_[subject];
  for (const std::string& warning : warnings) {
    const bool is_new = std::find(before.begin(), before.end(), warning) == before.end();
    if (is_new) LogWarning(subject + ": " + warning);
  }
  before = warnings;
}

}  // namespace colcast::models
