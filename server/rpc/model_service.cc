#include "server/rpc/model_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/models/model_config.h"
#include "server/net/peer.h"
#include "server/rpc/messages.h"
#include "tensorflow_serving/apis/model_service.pb.h"

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

Status MayReload(Reloads::From from, const std::string& peer) {
  switch (from) {
    case Reloads::From::kAnywhere:
      return OkStatus();
    case Reloads::From::kThisMachine:
      if (net::IsLocal(peer)) return OkStatus();
      return Error(StatusCode::kPermissionDenied, "HandleReloadConfigRequest came from ", peer,
                   "; with --model_service=local it is answered on this machine only");
    case Reloads::From::kNowhere:
      break;
  }
  return Error(StatusCode::kUnimplemented, "HandleReloadConfigRequest is off (--model_service)");
}

void Reload(models::ModelManager* manager, const Reloads& reloads, Call* call) {
  using Call = MessageCall<ReloadConfigRequest, ReloadConfigResponse>;
  const auto reload = std::make_shared<Call>(call);
  std::vector<models::ModelConfig> models;
  Status status = MayReload(reloads.from, call->peer());
  if (status.ok()) status = reload->Read();
  if (!status.ok()) return call->Finish(status);
  const auto answer = [reload](const Status& status) {
    ToProto(status, reload->response()->mutable_status());
    reload->Finish(status);
  };
  status = models::CheckModelConfig(reload->request().config(), reloads.logs, &models);
  if (status.ok()) status = manager->Reload(std::move(models), answer);
  if (!status.ok()) answer(status);
}

}  // namespace

Methods ModelMethods(models::ModelManager* models, Reloads reloads) {
  return {
      {PathOf(kModelService, "GetModelStatus"),
       MessageMethod<GetModelStatusRequest, GetModelStatusResponse>(
           [models](const GetModelStatusRequest& request, GetModelStatusResponse* response) {
             return Describe(*models, request, response);
           })},
      {PathOf(kModelService, "HandleReloadConfigRequest"),
       Method{
           [models, reloads = std::move(reloads)](Call* call) { Reload(models, reloads, call); }}},
  };
}

}  // namespace colcast::rpc
