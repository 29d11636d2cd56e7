#include <absl/flags/flag.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "server/flags/parts.h"

ABSL_FLAG(std::vector<std::string>, shadow_model_version, {},
          "comma-separated MODEL:VERSION:SHARE or MODEL:LABEL:SHARE: the version also runs a share "
          "(over 0, at most 1) of the requests to Predict that another version of the model has "
          "answered, when a worker would be idle; answers are compared (docs/compare.md)");

namespace colcast::flags {
namespace {

using shadow::ShadowVersion;

Status ReadVersion(const std::string& text, ShadowVersion* shadow) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 3 || parts[0].empty() || parts[1].empty()) {
    return InvalidArgument("--shadow_model_version: \"", text,
                           "\", expected MODEL:VERSION:SHARE or MODEL:LABEL:SHARE");
  }
  if (!absl::SimpleAtod(parts[2], &shadow->share) || !(shadow->share > 0 && shadow->share <= 1)) {
    return InvalidArgument("--shadow_model_version: the share \"", parts[2], "\" of \"", text,
                           "\" is not a number over 0 and at most 1");
  }
  shadow->spec.name = parts[0];
  int64_t version = 0;
  if (absl::SimpleAtoi(parts[1], &version)) {
    shadow->spec.version = version;
  } else {
    shadow->spec.version_label = parts[1];
  }
  return OkStatus();
}

}  // namespace

Status ReadShadowFlags(const models::ModelManager::Options& models,
                       std::vector<ShadowVersion>* versions, std::vector<std::string>* warnings) {
  for (const std::string& text : absl::GetFlag(FLAGS_shadow_model_version)) {
    ShadowVersion shadow;
    if (Status status = ReadVersion(text, &shadow); !status.ok()) return status;
    const std::string& name = shadow.spec.name;
    if (std::any_of(versions->begin(), versions->end(),
                    [&](const ShadowVersion& other) { return other.spec.name == name; })) {
      return InvalidArgument("--shadow_model_version: two shadow versions of model \"", name, "\"");
    }
    if (std::none_of(models.models.begin(), models.models.end(),
                     [&](const models::ModelConfig& model) { return model.name == name; })) {
      warnings->push_back("--shadow_model_version: no model \"" + name + "\" is configured");
    }
    versions->push_back(std::move(shadow));
  }
  return OkStatus();
}

}  // namespace colcast::flags
