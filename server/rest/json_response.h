// Converts models' answers to JSON, in the format that TF Serving documents.
#ifndef COLCAST_SERVER_REST_JSON_RESPONSE_H_
#define COLCAST_SERVER_REST_JSON_RESPONSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/rest/predict_json.h"
#include "server/wire/predict_response.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace colcast::http {

// Writes {"predictions": [...]} or {"outputs": ...}, without names for a single output. Strings
// become {"b64": "..."} if the output's name ends in "_bytes" or if they are not valid UTF-8.
// Returns INVALID_ARGUMENT, as in TF Serving, for an output that JSON cannot represent, and in row
// format for outputs with different numbers of rows.
Status WriteOutputs(const std::vector<OutputColumn>& outputs, JsonFormat format, std::string* json);

std::string WriteClassifications(const tensorflow::serving::ClassificationResult& result);
std::string WriteRegressions(const tensorflow::serving::RegressionResult& result);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_REST_JSON_RESPONSE_H_
