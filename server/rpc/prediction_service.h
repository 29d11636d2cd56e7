// tensorflow.serving.PredictionService. Predict is served raw: its request is never a protobuf
// object.
#ifndef COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
#define COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_

#include "server/models/model_manager.h"
#include "server/scheduling/worker_pool.h"
#include "server/wire/predict_response.h"
#include "tensorflow_serving/apis/prediction_service.grpc.pb.h"

namespace colcast::rpc {

using PredictionServiceBase = tensorflow::serving::PredictionService::WithRawCallbackMethod_Predict<
    tensorflow::serving::PredictionService::CallbackService>;

class PredictionService final : public PredictionServiceBase {
 public:
  // Both must outlive the service.
  PredictionService(const models::ModelManager* models, scheduling::WorkerPool* workers,
                    TensorEncoding encoding)
      : models_(models), workers_(workers), encoding_(encoding) {}

  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* GetModelMetadata(
      grpc::CallbackServerContext* context,
      const tensorflow::serving::GetModelMetadataRequest* request,
      tensorflow::serving::GetModelMetadataResponse* response) override;

 private:
  const models::ModelManager* const models_;
  scheduling::WorkerPool* const workers_;
  const TensorEncoding encoding_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
