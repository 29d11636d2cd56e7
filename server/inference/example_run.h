// Classify, Regress and MultiInference: tf.Examples run on one signature of a model, or on several.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_

#include "server/base/status.h"
#include "server/inference/call.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/wire/example_request.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::inference {

// What a request to Classify or Regress asks for, as a MultiInference of one task.
tensorflow::serving::MultiInferenceRequest OneTask(const tensorflow::serving::ModelSpec& model,
                                                   const char* method_name);

// The model that answers: that of the first task. As in TF Serving, only its version and label
// count.
const tensorflow::serving::ModelSpec& ModelSpecOf(
    const tensorflow::serving::MultiInferenceRequest& request);

// Runs `input` on `servable`, whatever model the request names, on the calling thread: a result for
// each task, in order, which names the model as the request did. A task without a signature has
// "serving_default". The request's own input does not count: its examples are `input`.
//
// INVALID_ARGUMENT, as in TF Serving: no examples; a signature that does not exist or does not do
// (CheckTask), outputs that make no answer (ToResult); of several tasks, no or different model
// names, or one signature twice. RESOURCE_EXHAUSTED for a context whose copies, one per example,
// fill over max_expanded_bytes.
Status RunExamples(const Servable& servable,
                   const tensorflow::serving::MultiInferenceRequest& request,
                   const ExampleInput& input, const CallOptions& options,
                   tensorflow::serving::MultiInferenceResponse* response,
                   metrics::CallRecord* record);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_
