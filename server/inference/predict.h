// Predict for a request that is a protobuf object: REST, Classify, warm-up. Requests that come as
// bytes are decoded where they lie and never become one (server/rpc/predict_call.h).
#ifndef COLCAST_SERVER_INFERENCE_PREDICT_H_
#define COLCAST_SERVER_INFERENCE_PREDICT_H_

#include <memory>

#include "server/engine/engine.h"
#include "server/inference/servable.h"
#include "server/wire/status.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace colcast::inference {

// Runs `request` on `servable`, whatever model its model_spec names, on the calling thread.
// Errors as engine::Model::Predict has them. RESOURCE_EXHAUSTED for a request over 2 GiB.
Status Predict(const Servable& servable, const tensorflow::serving::PredictRequest& request,
               std::unique_ptr<engine::Outputs>* outputs);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_PREDICT_H_
