// One call of Predict, from the bytes gRPC received to the bytes it sends.
#ifndef COLCAST_SERVER_RPC_PREDICT_CALL_H_
#define COLCAST_SERVER_RPC_PREDICT_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "server/backend.h"
#include "server/metrics/request_record.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::rpc {

// Owns itself: gRPC deletes it through OnDone, after Finish was called by Run or Drop.
class PredictCall final : public grpc::ServerUnaryReactor, public scheduling::Job {
 public:
  // The pointers are gRPC's and live until OnDone; `backend` outlives every call.
  PredictCall(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
              grpc::ByteBuffer* response, const Backend& backend);

  scheduling::Clock::time_point deadline() const override { return deadline_; }
  bool cancelled() const override { return context_->IsCancelled(); }
  void Run(scheduling::Clock::duration waited) override;
  void Drop(scheduling::DropReason reason) override;

 private:
  void OnDone() override { delete this; }
  // The servable found, even where the request then failed, for the record.
  Status Predict(std::shared_ptr<const inference::Servable>* servable,
                 metrics::RequestRecord* record);
  void Answer(const Status& status, metrics::RequestRecord* record);

  grpc::CallbackServerContext* const context_;
  const grpc::ByteBuffer* const request_;
  grpc::ByteBuffer* const response_;
  const Backend& backend_;
  const scheduling::Clock::time_point received_;
  const scheduling::Clock::time_point deadline_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICT_CALL_H_
