// Predict, and what another protocol has for it, from the bytes gRPC received to the bytes it
// sends.
#ifndef COLCAST_SERVER_RPC_WIRE_PREDICT_H_
#define COLCAST_SERVER_RPC_WIRE_PREDICT_H_

#include <cstddef>
#include <cstdint>

#include "server/backend.h"
#include "server/base/status.h"
#include "server/http2/call.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"

namespace colcast::rpc {

// How a protocol has the request and the answer.
struct PredictMessages {
  const char* api;  // for the metrics
  Status (*decode)(const Bytes& message, DecodedRequest* request, size_t max_columns);
  Status (*check)(const PredictResponse& response);
  size_t (*size)(const PredictResponse& response);
  void (*write)(const PredictResponse& response, uint8_t* out);
};

extern const PredictMessages kPredict;     // TensorFlow Serving's
extern const PredictMessages kModelInfer;  // the Open Inference Protocol's

// Has a worker answer the call. `backend` outlives it.
void SubmitPredict(const PredictMessages& messages, http2::Call* call, const Backend& backend);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_WIRE_PREDICT_H_
