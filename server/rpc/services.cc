#include "server/rpc/services.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpc_health/v1/health.pb.h"
#include "server/http2/connection.h"
#include "server/models/model_config.h"
#include "server/models/open_inference.h"
#include "server/net/socket.h"
#include "server/protos/open_inference.pb.h"
#include "server/rpc/messages.h"
#include "server/wire/infer.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/model_service.pb.h"

namespace colcast::rpc {

namespace {

using tensorflow::serving::GetModelMetadataRequest;
using tensorflow::serving::GetModelMetadataResponse;

constexpr char kSignatureDef[] = "signature_def";

// The trailer of GetModelMetadata that lists what this server can do beyond TensorFlow Serving:
// repeat single rows, read a domain's rows through an index, answer several users in one request,
// and compute a user's state without candidates. Without the trailer, clients send plain requests.
constexpr char kCanTrailer[] = "x-colcast-can";
constexpr char kCan[] = "expand,index,users,prefetch";

Status CheckMetadataFields(const GetModelMetadataRequest& request) {
  if (request.metadata_field().empty()) {
    return InvalidArgument("GetModelMetadata needs a metadata_field; the only one is \"",
                           kSignatureDef, "\"");
  }
  for (const std::string& field : request.metadata_field()) {
    if (field != kSignatureDef) {
      return InvalidArgument("Metadata field ", field, " is not supported; the only one is \"",
                             kSignatureDef, "\"");
    }
  }
  return OkStatus();
}

Status Describe(const models::ServingTable& models, const GetModelMetadataRequest& request,
                GetModelMetadataResponse* response) {
  if (Status status = CheckMetadataFields(request); !status.ok()) return status;
  std::shared_ptr<const inference::Servable> servable;
  const ModelSpec spec = FromProto(request.model_spec());
  if (Status status = models.Find(spec, &servable); !status.ok()) return status;
  tensorflow::serving::SignatureDefMap map;
  *map.mutable_signature_def() = servable->signatures();
  response->mutable_model_spec()->set_name(spec.name);
  response->mutable_model_spec()->mutable_version()->set_value(servable->version());
  (*response->mutable_metadata())[kSignatureDef].PackFrom(map);
  return OkStatus();
}

}  // namespace

Methods PredictionMethods(const Backend& backend) {
  return {{PathOf(kPredictionService, "GetModelMetadata"), {[&backend](Call* call) {
             MessageCall<GetModelMetadataRequest, GetModelMetadataResponse> message(call);
             Status status = message.Read();
             if (status.ok()) {
               status = Describe(*backend.served, message.request(), message.response());
             }
             if (status.ok()) call->AddTrailer(kCanTrailer, kCan);
             message.Finish(status);
           }}}};
}

namespace {

namespace oip = ::inference;  // the Open Inference Protocol

ModelSpec SpecOf(const std::string& name, const std::string& version) {
  ModelSpec spec;
  spec.name = name;
  SetInferVersion(version, &spec);
  return spec;
}

// Whether the model is loaded and can answer.
bool IsReady(const models::ServingTable& models, const oip::ModelReadyRequest& request) {
  std::shared_ptr<const inference::Servable> servable;
  return models.Find(SpecOf(request.name(), request.version()), &servable).ok() &&
         servable->model().damage().empty();
}

void DescribeModel(const models::ModelManager& models, Call* call) {
  MessageCall<oip::ModelMetadataRequest, oip::ModelMetadataResponse> message(call);
  Status status = message.Read();
  if (status.ok()) {
    ModelSpec spec = SpecOf(message.request().name(), message.request().version());
    spec.signature_name = call->Metadata(kSignatureHeader).value_or("");
    status = models::DescribeModel(models, spec, message.response());
  }
  message.Finish(status);
}

}  // namespace

Methods InferenceMethods(const Backend& backend) {
  const auto path = [](const char* method) { return PathOf(kInferenceService, method); };
  return {
      {path("ServerLive"),
       MessageMethod([](const oip::ServerLiveRequest&, oip::ServerLiveResponse* response) {
         response->set_live(true);
         return OkStatus();
       })},
      {path("ServerReady"), MessageMethod([&backend](const oip::ServerReadyRequest&,
                                                     oip::ServerReadyResponse* response) {
         response->set_ready(*backend.ready);
         return OkStatus();
       })},
      {path("ModelReady"), MessageMethod([&backend](const oip::ModelReadyRequest& request,
                                                    oip::ModelReadyResponse* response) {
         response->set_ready(IsReady(*backend.served, request));
         return OkStatus();
       })},
      {path("ServerMetadata"),
       MessageMethod([](const oip::ServerMetadataRequest&, oip::ServerMetadataResponse* response) {
         response->set_name("colcast");
         response->set_version(COLCAST_VERSION);
         response->add_extensions("parameters");
         return OkStatus();
       })},
      {path("ModelMetadata"), {[&backend](Call* call) { DescribeModel(*backend.models, call); }}},
  };
}

namespace {

using tensorflow::serving::GetModelStatusRequest;
using tensorflow::serving::GetModelStatusResponse;
using tensorflow::serving::ReloadConfigRequest;
using tensorflow::serving::ReloadConfigResponse;

Status MayReload(Reloads::From from, const std::string& peer) {
  switch (from) {
    case Reloads::From::kAnywhere:
      return OkStatus();
    case Reloads::From::kThisMachine:
      if (net::IsLocal(peer)) return OkStatus();
      return Error(StatusCode::kPermissionDenied, "HandleReloadConfigRequest came from ", peer,
                   "; --model_service=local accepts it from this machine only");
    case Reloads::From::kNowhere:
      break;
  }
  return Error(StatusCode::kUnimplemented, "HandleReloadConfigRequest is off (--model_service)");
}

void Reload(models::ModelManager* manager, const Reloads& reloads, Call* call) {
  using Call = MessageCall<ReloadConfigRequest, ReloadConfigResponse>;
  const auto reload = std::make_shared<Call>(call);
  std::vector<models::ModelConfig> models;
  Status status = MayReload(reloads.from, call->connection().peer());
  if (status.ok()) status = reload->Read();
  if (!status.ok()) return call->Finish(status);
  const auto answer = [reload](const Status& status) {
    tensorflow::serving::StatusProto* const told = reload->response()->mutable_status();
    told->set_error_code(static_cast<tensorflow::error::Code>(status.code));
    told->set_error_message(status.message);
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
       MessageMethod(
           [models](const GetModelStatusRequest& request, GetModelStatusResponse* response) {
             return models::DescribeVersions(*models, FromProto(request.model_spec()), response);
           })},
      {PathOf(kModelService, "HandleReloadConfigRequest"),
       {[models, reloads = std::move(reloads)](Call* call) { Reload(models, reloads, call); }}},
  };
}

namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListRequest;
using grpc::health::v1::HealthListResponse;

HealthCheckResponse Response(bool serving) {
  HealthCheckResponse response;
  response.set_status(serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  return response;
}

}  // namespace

// A client that watches a service. The protocol does not treat an unknown service as an error: the
// client gets SERVICE_UNKNOWN and keeps watching.
class HealthService::Watch {
 public:
  Watch(HealthService* health, Call* call) : health_(health), call_(call) {
    HealthCheckRequest request;
    if (Status status = ReadMessage(call->request(), &request); !status.ok()) {
      call->Finish(status);
    } else if (!health->Knows(request.service())) {
      HealthCheckResponse unknown;
      unknown.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
      Send(unknown);
    } else {
      const std::lock_guard<std::mutex> lock(health->mutex_);
      Send(Response(health->serving_));
      health->watches_.insert(this);
    }
  }
  ~Watch() {
    const std::lock_guard<std::mutex> lock(health_->mutex_);
    health_->watches_.erase(this);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void Send(const HealthCheckResponse& response) {
    Message bytes;
    if (Status status = WriteMessage(response, &bytes); !status.ok()) return call_->Finish(status);
    call_->Send(std::move(bytes));
  }

 private:
  HealthService* const health_;
  Call* const call_;
};

http2::Methods HealthService::Methods() {
  const auto check = [this](const HealthCheckRequest& request, HealthCheckResponse* response) {
    if (!Knows(request.service())) return NotFound("service name unknown");
    *response = Response(serving());
    return OkStatus();
  };
  const auto list = [this](const HealthListRequest&, HealthListResponse* response) {
    const HealthCheckResponse status = Response(serving());
    for (const std::string& name : services_) (*response->mutable_statuses())[name] = status;
    return OkStatus();
  };
  const auto watch = [this](Call* call) { return std::make_shared<Watch>(this, call); };
  return {{PathOf(kHealthService, "Check"), MessageMethod(check)},
          {PathOf(kHealthService, "List"), MessageMethod(list)},
          {PathOf(kHealthService, "Watch"), {{}, watch}}};
}

bool HealthService::Knows(const std::string& service) const {
  return std::find(services_.begin(), services_.end(), service) != services_.end();
}

bool HealthService::serving() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return serving_;
}

void HealthService::SetServing(bool serving) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (serving == serving_) return;
  serving_ = serving;
  for (Watch* watch : watches_) watch->Send(Response(serving));
}

}  // namespace colcast::rpc
