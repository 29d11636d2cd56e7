// One call of Classify, Regress or MultiInference, from the bytes gRPC received to those it sends.
#ifndef COLCAST_SERVER_RPC_EXAMPLE_CALL_H_
#define COLCAST_SERVER_RPC_EXAMPLE_CALL_H_

#include <string>

#include "server/inference/call.h"
#include "server/inference/multi_inference.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/model_spec.h"
#include "server/rpc/received_bytes.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/worker_call.h"
#include "server/wire/example_request.h"

namespace colcast::rpc {

template <typename Request>
const tensorflow::serving::ModelSpec& ModelSpecOf(const Request& request) {
  return request.model_spec();
}

inline const tensorflow::serving::ModelSpec& ModelSpecOf(
    const tensorflow::serving::MultiInferenceRequest& request) {
  return inference::ModelSpecOf(request);
}

// The message is read by the worker, not by the event loop's thread, and its tf.Examples by nobody
// but the model: parsing them takes longer than many a model to run.
template <typename Request, typename Response>
class ExampleCall final : public WorkerCall {
 public:
  using Infer = Status (*)(const inference::Servable&, const Request&, const ExampleInput&,
                           const inference::CallOptions&, Response*, inference::CallStats*);

  // `schema` is the request's; the others as WorkerCall has them.
  ExampleCall(const char* api, const MessageSchema& schema, Infer infer, UnaryCall* call,
              const Backend& backend)
      : WorkerCall(api, call, backend), schema_(schema), infer_(infer) {}

 private:
  Status Respond() override {
    ReceivedBytes received;
    if (Status status = received.Read(request()); !status.ok()) return status;
    const std::string& name = Request::descriptor()->name();
    ExampleRequest parts;
    if (Status status = DecodeExampleRequest(received.bytes(), schema_, name.c_str(),
                                             backend().calls.max_request_rows, &parts);
        !status.ok()) {
      return status;
    }
    Request parsed;
    if (!parsed.ParseFromString(parts.rest)) {
      return Internal("the ", name, "'s checker and protobuf disagree");
    }
    if (Status status = FindServable(FromProto(ModelSpecOf(parsed))); !status.ok()) return status;
    Response answer;
    inference::CallStats stats;
    const Status status = infer_(servable(), parsed, parts.input, backend().calls, &answer, &stats);
    record()->runtime = stats.runtime;
    record()->expansion = stats.expansion;
    return status.ok() ? WriteMessage(answer, response()) : status;
  }

  const MessageSchema& schema_;
  const Infer infer_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_EXAMPLE_CALL_H_
