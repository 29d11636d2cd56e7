// Regress: tf.Examples in, one number for each out.
#ifndef COLCAST_SERVER_INFERENCE_REGRESS_H_
#define COLCAST_SERVER_INFERENCE_REGRESS_H_

#include "server/inference/call.h"
#include "server/inference/servable.h"
#include "server/wire/example_request.h"
#include "server/wire/status.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace colcast::inference {

// As Classify (server/inference/classify.h), for a signature with one input, "inputs", and one
// output, "outputs": a float for each example, of shape [examples] or [examples, 1].
Status Regress(const Servable& servable, const tensorflow::serving::RegressionRequest& request,
               const CallOptions& options, tensorflow::serving::RegressionResponse* response,
               CallStats* stats);

// The same for a request whose examples were taken out of it (server/wire/example_request.h): its
// own `input` does not count.
Status Regress(const Servable& servable, const tensorflow::serving::RegressionRequest& request,
               const ExampleInput& input, const CallOptions& options,
               tensorflow::serving::RegressionResponse* response, CallStats* stats);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_REGRESS_H_
