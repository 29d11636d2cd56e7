// How a signature classifies: what it must look like, and what its outputs mean.
#ifndef COLCAST_SERVER_INFERENCE_CLASSIFICATION_H_
#define COLCAST_SERVER_INFERENCE_CLASSIFICATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/inference/call.h"
#include "server/wire/predict_response.h"
#include "server/wire/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow_serving/apis/classification.pb.h"

namespace colcast::inference {

// Sets `fetches` to "classes", "scores" or both, as the signature has them. INVALID_ARGUMENT if it
// has neither, or does not take examples.
Status CheckClassification(const tensorflow::SignatureDef& signature, const CallOptions& options,
                           std::vector<std::string>* fetches);

// What was fetched, as classes by example. INVALID_ARGUMENT, naming the output, unless classes are
// strings, scores floats, and both [examples, classes].
Status ToClassification(const std::vector<OutputColumn>& outputs, int64_t examples,
                        tensorflow::serving::ClassificationResult* result);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_CLASSIFICATION_H_
