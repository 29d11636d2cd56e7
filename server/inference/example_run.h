// Runs Classify, Regress and MultiInference: tf.Examples on one or more signatures of a model.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_

#include "server/base/status.h"
#include "server/inference/call.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/wire/example_request.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::inference {

// Expresses a Classify or Regress request as a MultiInference of one task.
tensorflow::serving::MultiInferenceRequest OneTask(const tensorflow::serving::ModelSpec& model,
                                                   const char* method_name);

// The spec that selects the servable: the first task's. As in TF Serving, only its version and
// label matter.
const tensorflow::serving::ModelSpec& ModelSpecOf(
    const tensorflow::serving::MultiInferenceRequest& request);

// Runs `input` on `servable` on the calling thread, without regard to the model that the request
// names. The response has one result per task, in order, which repeats the task's model spec. A
// task without a signature name uses "serving_default". The examples come from `input`, not from
// the request's own input.
//
// Returns INVALID_ARGUMENT, as in TF Serving, for no examples; for a signature that does not exist
// or does not fit (CheckTask()); for outputs that cannot be converted (ToResult()); and, with
// several tasks, for missing or different model names or a repeated signature. Returns
// RESOURCE_EXHAUSTED if the copies of a context, one per example, exceed max_expanded_bytes.
Status RunExamples(const Servable& servable,
                   const tensorflow::serving::MultiInferenceRequest& request,
                   const ExampleInput& input, const CallOptions& options,
                   tensorflow::serving::MultiInferenceResponse* response,
                   metrics::CallRecord* record);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_
