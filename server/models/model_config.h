// The models to serve, from a validated tensorflow.serving.ModelServerConfig.
#ifndef COLCAST_SERVER_MODELS_MODEL_CONFIG_H_
#define COLCAST_SERVER_MODELS_MODEL_CONFIG_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/status.h"
#include "server/models/version_directory.h"
#include "server/request_log/logging_config.h"
#include "tensorflow_serving/config/model_server_config.pb.h"

namespace colcast::models {

struct ModelConfig {
  std::string name;
  std::string base_path;  // absolute, unless it comes from --model_base_path
  VersionPolicy policy;
  std::map<std::string, int64_t> labels;  // label to version
  request_log::LoggingConfig logging;

  bool operator==(const ModelConfig& other) const;
};

// Returns INVALID_ARGUMENT, naming the model, for a missing model_config_list, a model without a
// name, a repeated name, a base path that is not absolute and local, and a platform other than
// "tensorflow". Also returns the errors of CheckLoggingConfig().
Status CheckModelConfig(const tensorflow::serving::ModelServerConfig& proto,
                        const request_log::LogPlaces& logs, std::vector<ModelConfig>* models);

// Like CheckModelConfig(), for protobuf's text format. Returns INVALID_ARGUMENT for a syntax error,
// with a message of the form "SOURCE:LINE:COLUMN: REASON".
Status ParseModelConfig(const std::string& text, const std::string& source,
                        const request_log::LogPlaces& logs, std::vector<ModelConfig>* models);

// Like ParseModelConfig(), for a file. Returns the errors of ReadFile() if it cannot be read.
Status ReadModelConfigFile(const std::string& path, const request_log::LogPlaces& logs,
                           std::vector<ModelConfig>* models);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MODEL_CONFIG_H_
