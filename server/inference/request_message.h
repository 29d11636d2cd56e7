// A request, whatever form it came in -> the message that TensorFlow Serving's gRPC would have
// brought, for the request log and shadow versions.
#ifndef COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_
#define COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_

#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/input.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace colcast::inference {

// `request` has been answered: its values fill their shapes.
tensorflow::serving::PredictRequest ToPredictRequest(const DecodedRequest& request);

// The examples are well-formed.
tensorflow::serving::Input ToInput(const ExampleInput& input);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_
