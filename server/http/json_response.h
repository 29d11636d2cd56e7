// Models' answers -> JSON, laid out as in TF Serving's documentation.
#ifndef COLCAST_SERVER_HTTP_JSON_RESPONSE_H_
#define COLCAST_SERVER_HTTP_JSON_RESPONSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/http/predict_json.h"
#include "server/wire/predict_response.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace colcast::http {

// {"predictions": [...]} or {"outputs": ...}; without names if there is one output. Strings of an
// output whose name ends in "_bytes", and those that are no UTF-8, become {"b64": "..."}.
// INVALID_ARGUMENT, as in TF Serving, for an output that JSON has no form for, and in rows for
// outputs that do not all have as many rows.
Status WriteOutputs(const std::vector<OutputColumn>& outputs, JsonFormat format, std::string* json);

// Appends one element, a string as such. False for a dtype that JSON has no form for.
bool AppendJsonElement(const OutputColumn& output, int64_t index, std::string* json);

std::string WriteClassifications(const tensorflow::serving::ClassificationResult& result);
std::string WriteRegressions(const tensorflow::serving::RegressionResult& result);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_JSON_RESPONSE_H_
