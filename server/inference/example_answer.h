// The outputs that a tf.Example task fetches from a signature, and their conversion into the
// answer: classes for each example (classify) or a number (regress).
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

// The only input that a signature for Classify or Regress may have: serialized tf.Examples.
inline constexpr char kExamplesInput[] = "inputs";

// Sets `fetches` to the outputs that the task needs: for classify "classes", "scores" or both, as
// the signature has them; for regress "outputs". Returns INVALID_ARGUMENT if the signature has
// other outputs, an input other than kExamplesInput or, where the options ask for the check,
// another method name. Returns UNIMPLEMENTED for a method_name other than kClassifyMethodName and
// kRegressMethodName.
Status CheckTask(const tensorflow::SignatureDef& signature, const std::string& method_name,
                 const CallOptions& options, std::vector<std::string>* fetches);

// Converts the outputs into `result`. Returns INVALID_ARGUMENT, naming the output, unless classes
// are strings and scores are floats, both [examples, classes], or outputs are floats of shape
// [examples] or [examples, 1].
Status ToResult(const std::vector<OutputColumn>& outputs, const std::string& method_name,
                int64_t examples, tensorflow::serving::InferenceResult* result);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_ANSWER_H_
