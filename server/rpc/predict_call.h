// One call of Predict, from the bytes gRPC received to the bytes it sends.
#ifndef COLCAST_SERVER_RPC_PREDICT_CALL_H_
#define COLCAST_SERVER_RPC_PREDICT_CALL_H_

#include "server/rpc/worker_call.h"

namespace colcast::rpc {

class PredictCall final : public WorkerCall {
 public:
  PredictCall(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
              grpc::ByteBuffer* response, const Backend& backend)
      : WorkerCall("Predict", context, request, response, backend) {}

 private:
  Status Respond() override;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICT_CALL_H_
