// Converts a request of any form into the message that TensorFlow Serving's gRPC would have
// received, for the request log and shadow versions.
#ifndef COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_
#define COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_

#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/input.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace colcast::inference {

// Includes columns that an item table supplied, so that the message can be answered without the
// table. REQUIRES that `request` has been answered, so that its values fill their shapes.
tensorflow::serving::PredictRequest ToPredictRequest(const DecodedRequest& request);

// REQUIRES well-formed examples.
tensorflow::serving::Input ToInput(const ExampleInput& input);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_
