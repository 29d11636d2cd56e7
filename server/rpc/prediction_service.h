// tensorflow.serving.PredictionService. Predict is served raw: its request is never a protobuf
// object.
#ifndef COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
#define COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_

#include "server/backend.h"
#include "tensorflow_serving/apis/prediction_service.grpc.pb.h"

namespace colcast::rpc {

using PredictionServiceBase = tensorflow::serving::PredictionService::WithRawCallbackMethod_Predict<
    tensorflow::serving::PredictionService::CallbackService>;

class PredictionService final : public PredictionServiceBase {
 public:
  explicit PredictionService(const Backend& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* GetModelMetadata(
      grpc::CallbackServerContext* context,
      const tensorflow::serving::GetModelMetadataRequest* request,
      tensorflow::serving::GetModelMetadataResponse* response) override;

 private:
  const Backend backend_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
