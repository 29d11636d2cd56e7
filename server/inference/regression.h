// How a signature regresses: what it must look like, and what its output means.
#ifndef COLCAST_SERVER_INFERENCE_REGRESSION_H_
#define COLCAST_SERVER_INFERENCE_REGRESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/inference/call.h"
#include "server/wire/predict_response.h"
#include "server/wire/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace colcast::inference {

// Sets `fetches` to "outputs". INVALID_ARGUMENT if that is not the signature's only output, or the
// signature does not take examples.
Status CheckRegression(const tensorflow::SignatureDef& signature, const CallOptions& options,
                       std::vector<std::string>* fetches);

// What was fetched, as a number for each example. INVALID_ARGUMENT unless it is floats of shape
// [examples] or [examples, 1].
Status ToRegression(const std::vector<OutputColumn>& outputs, int64_t examples,
                    tensorflow::serving::RegressionResult* result);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_REGRESSION_H_
