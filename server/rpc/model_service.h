// tensorflow.serving.ModelService: which versions there are and in which state, and the change of
// what is served.
#ifndef COLCAST_SERVER_RPC_MODEL_SERVICE_H_
#define COLCAST_SERVER_RPC_MODEL_SERVICE_H_

#include "server/models/model_manager.h"
#include "tensorflow_serving/apis/model_service.grpc.pb.h"

namespace colcast::rpc {

class ModelService final : public tensorflow::serving::ModelService::CallbackService {
 public:
  // `models` must outlive the service.
  explicit ModelService(models::ModelManager* models) : models_(models) {}

  grpc::ServerUnaryReactor* GetModelStatus(
      grpc::CallbackServerContext* context,
      const tensorflow::serving::GetModelStatusRequest* request,
      tensorflow::serving::GetModelStatusResponse* response) override;

  // Answers when the models that are new have settled: ModelManager::Reload.
  grpc::ServerUnaryReactor* HandleReloadConfigRequest(
      grpc::CallbackServerContext* context, const tensorflow::serving::ReloadConfigRequest* request,
      tensorflow::serving::ReloadConfigResponse* response) override;

 private:
  models::ModelManager* const models_;
};

}  // namespace colcast::rpc

#endif  // COLCAST_SERVER_RPC_MODEL_SERVICE_H_
