// Classify: tf.Examples in, for each one its classes out: labels, scores or both.
#ifndef COLCAST_SERVER_INFERENCE_CLASSIFY_H_
#define COLCAST_SERVER_INFERENCE_CLASSIFY_H_

#include "server/inference/call.h"
#include "server/inference/servable.h"
#include "server/wire/example_request.h"
#include "server/wire/status.h"
#include "tensorflow_serving/apis/classification.pb.h"

namespace colcast::inference {

// Runs `request` on `servable`, whatever model its model_spec names, on the calling thread; the
// signature "serving_default" if it names none. The response names the model as the request did.
//
// INVALID_ARGUMENT, as TF Serving has it: no examples, a signature that does not exist or can not
// classify (one input, "inputs"; "classes" and/or "scores" among one or two outputs), outputs that
// are not one row an example of as many strings as floats. RESOURCE_EXHAUSTED for more
// examples than max_request_rows, or a context whose copies, one an example, fill over
// max_expanded_bytes.
Status Classify(const Servable& servable, const tensorflow::serving::ClassificationRequest& request,
                const CallOptions& options, tensorflow::serving::ClassificationResponse* response,
                CallStats* stats);

// The same for a request whose examples were taken out of it (server/wire/example_request.h): its
// own `input` does not count.
Status Classify(const Servable& servable, const tensorflow::serving::ClassificationRequest& request,
                const ExampleInput& input, const CallOptions& options,
                tensorflow::serving::ClassificationResponse* response, CallStats* stats);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_CLASSIFY_H_
