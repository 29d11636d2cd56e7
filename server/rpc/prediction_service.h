// tensorflow.serving.PredictionService. What runs a model is read by a worker, and Predict's
// messages never become a protobuf object.
#ifndef COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
#define COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_

#include <vector>

#include "server/backend.h"
#include "server/rpc/unary_service.h"

namespace colcast::rpc {

inline constexpr char kPredictionService[] = "tensorflow.serving.PredictionService";

// `backend` must outlive them.
std::vector<UnaryService::Method> PredictionMethods(const Backend& backend);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
