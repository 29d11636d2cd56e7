// One call of Predict, from the bytes gRPC received to the bytes it sends.
#ifndef COLCAST_SERVER_RPC_PREDICT_CALL_H_
#define COLCAST_SERVER_RPC_PREDICT_CALL_H_

#include <grpcpp/grpcpp.h>

#include "server/models/model_manager.h"
#include "server/scheduling/worker_pool.h"
#include "server/wire/predict_response.h"

namespace colcast::rpc {

// Owns itself: gRPC deletes it through OnDone, after Finish was called by Run or Drop.
class PredictCall final : public grpc::ServerUnaryReactor, public scheduling::Job {
 public:
  // The pointers are gRPC's and live until OnDone; `models` outlives every call.
  PredictCall(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
              grpc::ByteBuffer* response, const models::ModelManager* models,
              TensorEncoding encoding);

  scheduling::Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return context_->IsCancelled(); }
  void Run(scheduling::Clock::duration waited) override;
  void Drop(scheduling::DropReason reason) override;

 private:
  void OnDone() override { delete this; }
  Status Predict();

  grpc::CallbackServerContext* const context_;
  const grpc::ByteBuffer* const request_;
  grpc::ByteBuffer* const response_;
  const models::ModelManager* const models_;
  const TensorEncoding encoding_;
  const scheduling::Clock::time_point deadline_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICT_CALL_H_
