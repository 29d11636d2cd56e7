// A model's logging_config: tensorflow.serving.LoggingConfig, checked.
#ifndef COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_
#define COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_

#include <string>
#include <tuple>

#include "server/base/status.h"
#include "tensorflow_serving/config/logging_config.pb.h"

namespace colcast::request_log {

struct LoggingConfig {
  double sampling_rate = 0;     // of the requests, drawn one by one; 0 logs none
  std::string filename_prefix;  // of the files; not empty unless the rate is 0

  bool operator==(const LoggingConfig& other) const {
    return std::tie(sampling_rate, filename_prefix) ==
           std::tie(other.sampling_rate, other.filename_prefix);
  }
};

// Where the files of a configuration may be.
struct LogPlaces {
  std::string directory;  // absolute; they go below it. Empty: there is none
  bool anywhere = false;  // without a directory: at any absolute path, otherwise nowhere
};

// INVALID_ARGUMENT for a rate that is not within [0, 1], and, where the rate is not 0, for a
// collector's type other than "" and "file", for a prefix with a control character or "..", and for
// one that is not in its place; a relative one is taken from the directory. FAILED_PRECONDITION
// where the rate is not 0 and there is no place.
Status CheckLoggingConfig(const tensorflow::serving::LoggingConfig& proto, const LogPlaces& places,
                          LoggingConfig* config);

}  // namespace colcast::request_log

#endif  // COLCAST_SERVER_REQUEST_LOG_LOGGING_CONFIG_H_
