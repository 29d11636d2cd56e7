// Converts a request of any API to the message that TensorFlow Serving would have received over
// gRPC, for the request log.
#ifndef COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_
#define COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_

#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/input.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace colcast::inference {

// Includes columns from item tables, so that the message can be answered without these tables.
// REQUIRES that `request` was answered successfully, which implies that its values fill their
// shapes.
tensorflow::serving::PredictRequest ToPredictRequest(const DecodedRequest& request);

// REQUIRES well-formed examples.
tensorflow::serving::Input ToInput(const ExampleInput& input);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_REQUEST_MESSAGE_H_
