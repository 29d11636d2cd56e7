#include "server/rpc/model_service.h"

#include <utility>
#include <vector>

#include "server/models/model_config.h"
#include "server/rpc/model_spec.h"
#include "server/rpc/status.h"

namespace colcast::rpc {
namespace {

using tensorflow::serving::GetModelStatusRequest;
using tensorflow::serving::GetModelStatusResponse;
using tensorflow::serving::ModelVersionStatus;
using tensorflow::serving::ReloadConfigRequest;
using tensorflow::serving::ReloadConfigResponse;

void ToProto(const Status& status, tensorflow::serving::StatusProto* proto) {
  proto->set_error_code(static_cast<tensorflow::error::Code>(status.code));
  proto->set_error_message(status.message);
}

Status Describe(const models::ModelManager& models, const GetModelStatusRequest& request,
                GetModelStatusResponse* response) {
  std::vector<models::VersionStatus> versions;
  if (Status status = models.GetStatus(FromProto(request.model_spec()), &versions); !status.ok()) {
    return status;
  }
  for (const models::VersionStatus& version : versions) {
    ModelVersionStatus* entry = response->add_model_version_status();
    entry->set_version(version.version);
    entry->set_state(static_cast<ModelVersionStatus::State>(version.state));
    ToProto(version.error, entry->mutable_status());
  }
  return OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* ModelService::GetModelStatus(grpc::CallbackServerContext* context,
                                                       const GetModelStatusRequest* request,
                                                       GetModelStatusResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(Describe(*models_, *request, response)));
  return reactor;
}

grpc::ServerUnaryReactor* ModelService::HandleReloadConfigRequest(
    grpc::CallbackServerContext* context, const ReloadConfigRequest* request,
    ReloadConfigResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto answer = [reactor, response](const Status& status) {
    ToProto(status, response->mutable_status());
    reactor->Finish(ToGrpc(status));
  };
  std::vector<models::ModelConfig> models;
  Status status = models::CheckModelConfig(request->config(), &models);
  if (status.ok()) status = models_->Reload(std::move(models), answer);
  if (!status.ok()) answer(status);
  return reactor;
}

}  // namespace colcast::rpc
