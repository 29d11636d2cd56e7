// Runs Classify, Regress and MultiInference: calls one or more of a model's signatures with
// tf.Examples.
#ifndef COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_
#define COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_

#include "server/base/status.h"
#include "server/inference/call_options.h"
#include "server/inference/servable.h"
#include "server/metrics/call_record.h"
#include "server/wire/example_request.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::inference {

// Converts a Classify or Regress request to a MultiInference request with one task.
tensorflow::serving::MultiInferenceRequest OneTask(const tensorflow::serving::ModelSpec& model,
                                                   const char* method_name);

// The spec that selects the servable: that of the first task. As in TF Serving, the version and
// label of the other tasks are ignored.
const tensorflow::serving::ModelSpec& ModelSpecOf(
    const tensorflow::serving::MultiInferenceRequest& request);

// Runs the request's tasks on `servable`, on the calling thread, ignoring the model that the
// request names. The response has one result per task, in the same order, with the model name,
// signature and version. A task without a signature name uses "serving_default". The examples come
// from `input`, not from the request.
//
// Returns INVALID_ARGUMENT, as in TF Serving, if there are no examples, a signature does not exist
// or does not fit (CheckTask()), or outputs cannot be converted (ToResult()); with several tasks,
// also if model names are missing or differ, or a signature is repeated. Returns RESOURCE_EXHAUSTED
// if the copies of the context, one per example, exceed max_expanded_bytes.
Status RunExamples(const Servable& servable,
                   const tensorflow::serving::MultiInferenceRequest& request,
                   const ExampleInput& input, const CallOptions& options,
                   tensorflow::serving::MultiInferenceResponse* response,
                   metrics::CallRecord* record);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_EXAMPLE_RUN_H_
