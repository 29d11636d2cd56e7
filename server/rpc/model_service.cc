#include "server/rpc/model_service.h"

#include <vector>

#include "server/rpc/model_spec.h"
#include "server/rpc/status.h"

namespace colcast::rpc {
namespace {

using tensorflow::serving::GetModelStatusRequest;
using tensorflow::serving::GetModelStatusResponse;
using tensorflow::serving::ModelVersionStatus;

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
    entry->mutable_status()->set_error_code(
        static_cast<tensorflow::error::Code>(version.error.code));
    entry->mutable_status()->set_error_message(version.error.message);
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

}  // namespace colcast::rpc
