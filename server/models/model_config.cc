#include "server/models/model_config.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include "server/base/file.h"
#include "server/protos/text_proto.h"

namespace colcast::models {
namespace {

constexpr char kTensorFlow[] = "tensorflow";

Status CheckPlatform(const tensorflow::serving::ModelConfig& proto) {
  const std::string model = "model \"" + proto.name() + "\": ";
  if (proto.model_platform() == kTensorFlow) return OkStatus();
  if (proto.model_platform().empty()) {
    return InvalidArgument(model, "model_platform is not set, expected \"", kTensorFlow, "\"");
  }
  return InvalidArgument(model, "platform \"", proto.model_platform(),
                         "\" is not supported, only \"", kTensorFlow, "\" is");
}

Status CheckBasePath(const tensorflow::serving::ModelConfig& proto) {
  const std::string& path = proto.base_path();
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("model \"", proto.name(), "\": base_path ", path.c_str(),
                           " is followed by a NUL byte, which no path can contain");
  }
  if (path.find("://") != std::string::npos) {
    return InvalidArgument("model \"", proto.name(), "\": base_path ", path,
                           " is not on a local file system");
  }
  if (std::filesystem::path(path).is_absolute()) return OkStatus();
  return InvalidArgument("Expected model ", proto.name(),
                         " to have an absolute path; got base_path \"", path, "\"");
}

VersionPolicy MakePolicy(
    const tensorflow::serving::FileSystemStoragePathSourceConfig::ServableVersionPolicy& proto) {
  VersionPolicy policy;
  if (proto.has_all()) policy.kind = VersionPolicy::Kind::kAll;
  if (proto.has_specific()) {
    policy.kind = VersionPolicy::Kind::kSpecific;
    const std::set<int64_t> versions(proto.specific().versions().begin(),
                                     proto.specific().versions().end());
    policy.versions.assign(versions.begin(), versions.end());
  }
  // As in TensorFlow Serving, 0 means 1, because an unset field reads as 0.
  policy.num_versions = std::max(1u, proto.latest().num_versions());
  return policy;
}

}  // namespace

bool ModelConfig::operator==(const ModelConfig& other) const {
  return std::tie(name, base_path, policy, labels, logging) ==
         std::tie(other.name, other.base_path, other.policy, other.labels, other.logging);
}

Status CheckModelConfig(const tensorflow::serving::ModelServerConfig& proto,
                        const request_log::LogPlaces& logs, std::vector<ModelConfig>* models) {
  if (!proto.has_model_config_list()) {
    return InvalidArgument("the configuration has no model_config_list, the only kind supported");
  }
  std::vector<ModelConfig> checked;
  std::set<std::string> names;
  for (const tensorflow::serving::ModelConfig& model : proto.model_config_list().config()) {
    if (model.name().empty()) {
      return InvalidArgument("the model with base_path \"", model.base_path(), "\" has no name");
    }
    if (!names.insert(model.name()).second) {
      return InvalidArgument("Illegal to list model ", model.name(),
                             " multiple times in config list");
    }
    if (Status status = CheckPlatform(model); !status.ok()) return status;
    if (Status status = CheckBasePath(model); !status.ok()) return status;
    request_log::LoggingConfig logging;
    if (Status status = CheckLoggingConfig(model.logging_config(), logs, &logging); !status.ok()) {
      return Error(status.code, "model \"", model.name(), "\": ", status.message);
    }
    checked.push_back({model.name(),
                       model.base_path(),
                       MakePolicy(model.model_version_policy()),
                       {model.version_labels().begin(), model.version_labels().end()},
                       std::move(logging)});
  }
  *models = std::move(checked);
  return OkStatus();
}

Status ParseModelConfig(const std::string& text, const std::string& source,
                        const request_log::LogPlaces& logs, std::vector<ModelConfig>* models) {
  tensorflow::serving::ModelServerConfig proto;
  if (Status status = ParseTextProto(text, source, &proto); !status.ok()) return status;
  Status status = CheckModelConfig(proto, logs, models);
  if (!status.ok()) status.message = source + ": " + status.message;
  return status;
}

Status ReadModelConfigFile(const std::string& path, const request_log::LogPlaces& logs,
                           std::vector<ModelConfig>* models) {
  std::string text;
  if (Status status = ReadFile(path, &text); !status.ok()) return status;
  return ParseModelConfig(text, path, logs, models);
}

}  // namespace colcast::models
