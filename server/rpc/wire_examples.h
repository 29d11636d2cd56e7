// Classify, Regress and MultiInference from the bytes gRPC received to the bytes it sends.
#ifndef COLCAST_SERVER_RPC_WIRE_EXAMPLES_H_
#define COLCAST_SERVER_RPC_WIRE_EXAMPLES_H_

#include <cstddef>

#include "server/backend.h"
#include "server/base/status.h"
#include "server/http2/call.h"
#include "server/wire/schema.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::rpc {

// A method's messages.
struct ExamplesMessages {
  const char* api;      // for the metrics: Classify
  const char* request;  // the message's name, for errors
  const MessageSchema& schema;
  // From the request without its examples; false if protobuf cannot parse it.
  bool (*parse)(const std::string& rest, tensorflow::serving::MultiInferenceRequest* tasks);
  Status (*write)(const tensorflow::serving::MultiInferenceResponse& response,
                  http2::Message* message);
};

extern const ExamplesMessages kExamplesMessages[3];

// Has a worker answer the call. `backend` outlives it.
void SubmitExamples(const ExamplesMessages& messages, http2::Call* call, const Backend& backend);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_WIRE_EXAMPLES_H_
