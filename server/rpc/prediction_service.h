// tensorflow.serving.PredictionService. Workers read the requests that run a model; Predict
// messages never become protobuf objects.
#ifndef COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
#define COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_

#include "server/backend.h"
#include "server/http2/call.h"
#include "server/rpc/offload.h"

namespace colcast::rpc {

inline constexpr char kPredictionService[] = "tensorflow.serving.PredictionService";

// Both must outlive the methods. `offload` may take Predict calls first; null if all run here.
http2::Methods PredictionMethods(const Backend& backend, Offload* offload);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
