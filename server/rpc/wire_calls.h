// Calls that run a model, from received gRPC bytes to sent ones.
#ifndef COLCAST_SERVER_RPC_WIRE_CALLS_H_
#define COLCAST_SERVER_RPC_WIRE_CALLS_H_

#include <cstddef>
#include <cstdint>

#include "server/backend.h"
#include "server/base/status.h"
#include "server/http2/call.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"
#include "server/wire/predict_response.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::rpc {

// The messages of Classify, Regress or MultiInference.
struct ExamplesMessages {
  const char* api;      // for the metrics: Classify
  const char* request;  // the message's name, for errors
  // Parses the request without its examples; false if protobuf cannot.
  bool (*parse)(const std::string& rest, tensorflow::serving::MultiInferenceRequest* tasks);
  Status (*write)(const tensorflow::serving::MultiInferenceResponse& response,
                  http2::Message* message);
};

extern const ExamplesMessages kExamplesMessages[3];

// Queues the call for a worker. `backend` must outlive it.
void SubmitExamples(const ExamplesMessages& messages, http2::Call* call, const Backend& backend);

// How a protocol represents request and answer.
struct PredictMessages {
  const char* api;  // for the metrics
  Status (*decode)(const Bytes& message, DecodedRequest* request, size_t max_columns);
  Status (*write)(const PredictResponse& response, const MakeBuffer& make);
};

extern const PredictMessages kPredict;     // TensorFlow Serving's
extern const PredictMessages kModelInfer;  // the Open Inference Protocol's

// Queues the call for a worker. `backend` must outlive it.
void SubmitPredict(const PredictMessages& messages, http2::Call* call, const Backend& backend);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_WIRE_CALLS_H_
