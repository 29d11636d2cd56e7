// Classify, Regress and MultiInference, from received gRPC bytes to sent ones.
#ifndef COLCAST_SERVER_RPC_WIRE_EXAMPLES_H_
#define COLCAST_SERVER_RPC_WIRE_EXAMPLES_H_

#include <cstddef>

#include "server/backend.h"
#include "server/base/status.h"
#include "server/http2/call.h"
#include "server/wire/schema.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace colcast::rpc {

// The messages of a method.
struct ExamplesMessages {
  const char* api;      // for the metrics: Classify
  const char* request;  // the message's name, for errors
  const MessageSchema& schema;
  // Parses the request without its examples; false if protobuf cannot.
  bool (*parse)(const std::string& rest, tensorflow::serving::MultiInferenceRequest* tasks);
  Status (*write)(const tensorflow::serving::MultiInferenceResponse& response,
                  http2::Message* message);
};

extern const ExamplesMessages kExamplesMessages[3];

// Queues the call for a worker. `backend` must outlive it.
void SubmitExamples(const ExamplesMessages& messages, http2::Call* call, const Backend& backend);

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_WIRE_EXAMPLES_H_
