// Serializes a request and its response as a tensorflow.serving.PredictionLog.
#ifndef COLCAST_SERVER_REQUEST_LOG_PREDICTION_LOG_H_
#define COLCAST_SERVER_REQUEST_LOG_PREDICTION_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "server/wire/bytes.h"

namespace colcast::request_log {

// A call that was answered.
struct LoggedCall {
  std::string_view api;  // Predict, Classify, Regress or MultiInference
  std::string_view model_name;
  int64_t version = 0;  // the version that answered
  std::string_view signature_name;
  Bytes request;   // the API's messages as received and sent;
  Bytes response;  // their contents are not examined
};

// `timestamp_seconds` counts from 1970.
std::string MakePredictionLog(const LoggedCall& call, double sampling_rate,
                              int64_t timestamp_seconds);

}  // namespace colcast::request_log

#endif  // COLCAST_SERVER_REQUEST_LOG_PREDICTION_LOG_H_
