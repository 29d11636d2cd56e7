// Predict for a request that is a protobuf object: REST, Classify, warm-up. Requests that come as
// bytes are decoded where they lie and never become one (server/rpc/predict_call.h).
#ifndef COLCAST_SERVER_INFERENCE_PREDICT_H_
#define COLCAST_SERVER_INFERENCE_PREDICT_H_

#include <memory>
#include <string_view>

#include "server/engine/engine.h"
#include "server/inference/call.h"
#include "server/inference/servable.h"
#include "server/wire/status.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace colcast::inference {

// Runs `request` on `servable`, whatever model its model_spec names, on the calling thread.
// Errors as engine::Model::Predict has them. RESOURCE_EXHAUSTED for a request over 2 GiB.
Status Predict(const Servable& servable, const tensorflow::serving::PredictRequest& request,
               std::unique_ptr<engine::Outputs>* outputs);

// The same for engine::Model::PredictTogether.
Status PredictTogether(const Servable& servable, const tensorflow::serving::PredictRequest& request,
                       std::unique_ptr<engine::Outputs>* outputs);

// Whether Predict may run a signature ("serving_default" for an empty name). INTERNAL, as in
// TensorFlow Serving, where the options ask for method names and this one is none of its three.
Status CheckMethodName(const Servable& servable, std::string_view signature_name,
                       const CallOptions& options);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_PREDICT_H_
