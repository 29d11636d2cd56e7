// tensorflow.serving.PredictionService. What runs a model is served raw: gRPC hands over bytes, and
// a worker reads them. Predict's never become a protobuf object.
#ifndef COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
#define COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_

#include "server/backend.h"
#include "server/rpc/worker_call.h"
#include "tensorflow_serving/apis/prediction_service.grpc.pb.h"

namespace colcast::rpc {

template <typename Service>
using WithRawMethods = tensorflow::serving::PredictionService::WithRawCallbackMethod_Predict<
    tensorflow::serving::PredictionService::WithRawCallbackMethod_Classify<
        tensorflow::serving::PredictionService::WithRawCallbackMethod_Regress<
            tensorflow::serving::PredictionService::WithRawCallbackMethod_MultiInference<
                Service>>>>;

class PredictionService final
    : public WithRawMethods<tensorflow::serving::PredictionService::CallbackService> {
 public:
  explicit PredictionService(const Backend& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* Classify(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* Regress(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* MultiInference(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;

  grpc::ServerUnaryReactor* GetModelMetadata(
      grpc::CallbackServerContext* context,
      const tensorflow::serving::GetModelMetadataRequest* request,
      tensorflow::serving::GetModelMetadataResponse* response) override;

 private:
  grpc::ServerUnaryReactor* Submit(WorkerCall* call);

  const Backend backend_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_PREDICTION_SERVICE_H_
