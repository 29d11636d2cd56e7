// A model's logging_config: a checked tensorflow.serving.LoggingConfig.
#ifndef COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_
#define COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_

#include <string>
#include <tuple>

#include "server/base/status.h"
#include "tensorflow_serving/config/logging_config.pb.h"

namespace colcast::request_log {

struct LoggingConfig {
  double sampling_rate = 0;     // the probability that a request is logged
  std::string filename_prefix;  // begins the log files' paths; empty only if the rate is 0

  bool operator==(const LoggingConfig& other) const {
    return std::tie(sampling_rate, filename_prefix) ==
           std::tie(other.sampling_rate, other.filename_prefix);
  }
};

// Where a configuration may put its log files.
struct LogPlaces {
  std::string directory;  // absolute; files must be below it
  bool anywhere = false;  // used without a directory: true allows any absolute path
};

// Checks `proto` and sets `*config`. A relative prefix is relative to the directory in `places`.
// Returns INVALID_ARGUMENT for a rate outside [0, 1] and, unless the rate is 0, for a collector
// type other than "" or "file", a prefix with a control character or "..", and a prefix that
// `places` forbids. Returns FAILED_PRECONDITION if the rate is not 0 and `places` allows no path.
Status CheckLoggingConfig(const tensorflow::serving::LoggingConfig& proto, const LogPlaces& places,
                          LoggingConfig* config);

}  // namespace colcast::request_log

#endif  // COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_
