// A model's logging_config: a checked tensorflow.serving.LoggingConfig.
#ifndef COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_
#define COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_

#include <string>
#include <tuple>

#include "server/base/status.h"
#include "tensorflow_serving/config/logging_config.pb.h"

namespace colcast::request_log {

struct LoggingConfig {
  double sampling_rate = 0;     // share of requests, drawn one by one; 0 logs none
  std::string filename_prefix;  // prefix of the files; not empty unless the rate is 0

  bool operator==(const LoggingConfig& other) const {
    return std::tie(sampling_rate, filename_prefix) ==
           std::tie(other.sampling_rate, other.filename_prefix);
  }
};

// Where the log files of a configuration may be.
struct LogPlaces {
  std::string directory;  // absolute; files must be below it. Empty if there is none
  bool anywhere = false;  // only without a directory: allows any absolute path, instead of none
};

// Returns INVALID_ARGUMENT for a rate outside [0, 1]. Unless the rate is 0, also for a collector
// type other than "" and "file", a prefix with a control character or "..", and a prefix outside
// the allowed place; a relative prefix is relative to the directory. Returns FAILED_PRECONDITION if
// the rate is not 0 and no place is allowed.
Status CheckLoggingConfig(const tensorflow::serving::LoggingConfig& proto, const LogPlaces& places,
                          LoggingConfig* config);

}  // namespace colcast::request_log

#endif  // COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_
