#include "server/rpc/prediction_service.h"

#include <memory>
#include <string>

#include "server/inference/classify.h"
#include "server/inference/multi_inference.h"
#include "server/inference/regress.h"
#include "server/rpc/example_call.h"
#include "server/rpc/model_spec.h"
#include "server/rpc/predict_call.h"
#include "server/rpc/status.h"

namespace colcast::rpc {
namespace {

using tensorflow::serving::ClassificationRequest;
using tensorflow::serving::ClassificationResponse;
using tensorflow::serving::GetModelMetadataRequest;
using tensorflow::serving::GetModelMetadataResponse;
using tensorflow::serving::MultiInferenceRequest;
using tensorflow::serving::MultiInferenceResponse;
using tensorflow::serving::RegressionRequest;
using tensorflow::serving::RegressionResponse;

constexpr char kSignatureDef[] = "signature_def";

Status CheckMetadataFields(const GetModelMetadataRequest& request) {
  if (request.metadata_field().empty()) {
    return InvalidArgument("GetModelMetadata needs a metadata_field; there is one: \"",
                           kSignatureDef, "\"");
  }
  for (const std::string& field : request.metadata_field()) {
    if (field != kSignatureDef) {
      return InvalidArgument("Metadata field ", field, " is not supported; there is one: \"",
                             kSignatureDef, "\"");
    }
  }
  return OkStatus();
}

Status Describe(const models::ModelManager& models, const GetModelMetadataRequest& request,
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

grpc::ServerUnaryReactor* PredictionService::Predict(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) {
  return Submit(new PredictCall(context, request, response, backend_));
}

grpc::ServerUnaryReactor* PredictionService::Classify(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  return Submit(new ExampleCall<ClassificationRequest, ClassificationResponse>(
      "Classify", kExampleRequest, inference::Classify, context, request, response, backend_));
}

grpc::ServerUnaryReactor* PredictionService::Regress(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) {
  return Submit(new ExampleCall<RegressionRequest, RegressionResponse>(
      "Regress", kExampleRequest, inference::Regress, context, request, response, backend_));
}

grpc::ServerUnaryReactor* PredictionService::MultiInference(grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request,
                                                            grpc::ByteBuffer* response) {
  return Submit(new ExampleCall<MultiInferenceRequest, MultiInferenceResponse>(
      "MultiInference", kMultiInferenceRequest, inference::MultiInference, context, request,
      response, backend_));
}

grpc::ServerUnaryReactor* PredictionService::Submit(WorkerCall* call) {
  grpc::ServerUnaryReactor* const reactor = call->reactor();
  backend_.workers->Submit(call);  // which may have answered already when it returns
  return reactor;
}

grpc::ServerUnaryReactor* PredictionService::GetModelMetadata(
    grpc::CallbackServerContext* context, const GetModelMetadataRequest* request,
    GetModelMetadataResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(Describe(*backend_.models, *request, response)));
  return reactor;
}

}  // namespace colcast::rpc
