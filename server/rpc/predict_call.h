// One call of Predict, from the bytes gRPC received to the bytes it sends.
#ifndef COLCAST_SERVER_RPC_PREDICT_CALL_H_
#define COLCAST_SERVER_RPC_PREDICT_CALL_H_

#include "server/rpc/worker_call.h"

namespace colcast::rpc {

class PredictCall final : public WorkerCall {
 public:
  PredictCall(UnaryCall* call, const Backend& backend) : WorkerCall("Predict", call, backend) {}

 private:
  Status Respond() override;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICT_CALL_H_
