// What a task on tf.Examples fetches from a signature, and the answer that the outputs make:
// classes for each example (classify), or a number (regress).
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_ANSWER_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_ANSWER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/inference/call.h"
#include "server/wire/predict_response.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::inference {

// The only input of a signature that classifies or regresses: serialized tf.Examples.
inline constexpr char kExamplesInput[] = "inputs";

// Sets `fetches`: to classify, "classes", "scores" or both, as the signature has them; to regress,
// "outputs". INVALID_ARGUMENT if the signature has other outputs, or another input than
// kExamplesInput, or, where the options ask for it, another method name. UNIMPLEMENTED for a
// method_name other than kClassifyMethodName and kRegressMethodName.
Status CheckTask(const tensorflow::SignatureDef& signature, const std::string& method_name,
                 const CallOptions& options, std::vector<std::string>* fetches);

// INVALID_ARGUMENT, naming the output, unless classes are strings and scores floats, both
// [examples, classes], or outputs floats of shape [examples] or [examples, 1].
Status ToResult(const std::vector<OutputColumn>& outputs, const std::string& method_name,
                int64_t examples, tensorflow::serving::InferenceResult* result);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_ANSWER_H_
