#include "server/rpc/prediction_service.h"

#include <memory>
#include <string>

#include "server/inference/classify.h"
#include "server/inference/multi_inference.h"
#include "server/inference/regress.h"
#include "server/rpc/example_call.h"
#include "server/rpc/message_call.h"
#include "server/rpc/model_spec.h"
#include "server/rpc/predict_call.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"

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

template <typename Request, typename Response>
UnaryService::Method ExampleMethod(const char* name, const MessageSchema& schema,
                                   typename ExampleCall<Request, Response>::Infer infer,
                                   const Backend& backend) {
  return {name, [name, &schema, infer, &backend](UnaryCall* call) {
            backend.workers->Submit(
                new ExampleCall<Request, Response>(name, schema, infer, call, backend));
          }};
}

}  // namespace

std::vector<UnaryService::Method> PredictionMethods(const Backend& backend) {
  return {
      {"Predict",
       [&backend](UnaryCall* call) { backend.workers->Submit(new PredictCall(call, backend)); }},
      ExampleMethod<ClassificationRequest, ClassificationResponse>("Classify", kExampleRequest,
                                                                   inference::Classify, backend),
      ExampleMethod<RegressionRequest, RegressionResponse>("Regress", kExampleRequest,
                                                           inference::Regress, backend),
      ExampleMethod<MultiInferenceRequest, MultiInferenceResponse>(
          "MultiInference", kMultiInferenceRequest, inference::MultiInference, backend),
      MessageMethod<GetModelMetadataRequest, GetModelMetadataResponse>(
          "GetModelMetadata",
          [&backend](const GetModelMetadataRequest& request, GetModelMetadataResponse* response) {
            return Describe(*backend.models, request, response);
          }),
  };
}

}  // namespace colcast::rpc
