#include "server/rpc/inference_service.h"

#include <memory>
#include <string>

#include "server/models/open_inference.h"
#include "server/protos/open_inference.pb.h"
#include "server/rpc/messages.h"
#include "server/rpc/wire_predict.h"
#include "server/wire/infer_tensor.h"

namespace colcast::rpc {
namespace {

using ::inference::ModelMetadataRequest;
using ::inference::ModelMetadataResponse;
using ::inference::ModelReadyRequest;
using ::inference::ModelReadyResponse;
using ::inference::RepositoryIndexRequest;
using ::inference::RepositoryIndexResponse;
using ::inference::ServerLiveRequest;
using ::inference::ServerLiveResponse;
using ::inference::ServerMetadataRequest;
using ::inference::ServerMetadataResponse;
using ::inference::ServerReadyRequest;
using ::inference::ServerReadyResponse;

ModelSpec SpecOf(const std::string& name, const std::string& version) {
  ModelSpec spec;
  spec.name = name;
  SetInferVersion(version, &spec);
  return spec;
}

Status IsLive(const ServerLiveRequest&, ServerLiveResponse* response) {
  response->set_live(true);
  return OkStatus();
}

Status DescribeServer(const ServerMetadataRequest&, ServerMetadataResponse* response) {
  *response = models::DescribeServer();
  return OkStatus();
}

// A missing model is not ready.
bool IsReady(const models::ModelManager& models, const ModelReadyRequest& request) {
  std::shared_ptr<const inference::Servable> servable;
  return models.Find(SpecOf(request.name(), request.version()), &servable).ok();
}

void DescribeModel(const models::ModelManager& models, Call* call) {
  MessageCall<ModelMetadataRequest, ModelMetadataResponse> message(call);
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
  Methods methods;
  const auto add = [&methods](const char* name, Method method) {
    methods.emplace(PathOf(kInferenceService, name), std::move(method));
  };
  add("ModelInfer", Method{[&backend](Call* call) { SubmitPredict(kModelInfer, call, backend); }});
  add("ServerLive", MessageMethod<ServerLiveRequest, ServerLiveResponse>(IsLive));
  add("ServerReady", MessageMethod<ServerReadyRequest, ServerReadyResponse>(
                         [&backend](const ServerReadyRequest&, ServerReadyResponse* response) {
                           response->set_ready(*backend.ready);
                           return OkStatus();
                         }));
  add("ModelReady", MessageMethod<ModelReadyRequest, ModelReadyResponse>(
                        [&backend](const ModelReadyRequest& request, ModelReadyResponse* response) {
                          response->set_ready(IsReady(*backend.models, request));
                          return OkStatus();
                        }));
  add("ServerMetadata",
      MessageMethod<ServerMetadataRequest, ServerMetadataResponse>(DescribeServer));
  add("ModelMetadata", Method{[&backend](Call* call) { DescribeModel(*backend.models, call); }});
  add("RepositoryIndex",
      MessageMethod<RepositoryIndexRequest, RepositoryIndexResponse>(
          [&backend](const RepositoryIndexRequest& request, RepositoryIndexResponse* response) {
            *response = models::IndexModels(*backend.models, request.ready());
            return OkStatus();
          }));
  return methods;
}

}  // namespace colcast::rpc
