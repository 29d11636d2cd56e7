// A request that came as JSON -> the message that gRPC would have brought, for the request log.
#ifndef COLCAST_SERVER_HTTP_REQUEST_MESSAGE_H_
#define COLCAST_SERVER_HTTP_REQUEST_MESSAGE_H_

#include "server/wire/example_request.h"
#include "server/wire/predict_request.h"
#include "tensorflow_serving/apis/input.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace colcast::http {

// `request` is one that PredictJson filled: values are in tensor_content or messages.
tensorflow::serving::PredictRequest ToPredictRequest(const DecodedRequest& request);

// `input` is one that ExamplesJson filled: the examples are well-formed.
tensorflow::serving::Input ToInput(const ExampleInput& input);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_REQUEST_MESSAGE_H_
