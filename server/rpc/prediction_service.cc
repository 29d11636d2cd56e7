#include "server/rpc/prediction_service.h"

#include <memory>
#include <string>

#include "server/rpc/messages.h"
#include "server/rpc/wire_examples.h"
#include "server/rpc/wire_predict.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"

namespace colcast::rpc {
namespace {

using tensorflow::serving::GetModelMetadataRequest;
using tensorflow::serving::GetModelMetadataResponse;

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

Methods PredictionMethods(const Backend& backend, Offload* offload) {
  Methods methods;
  const auto add = [&methods](const char* name, Method method) {
    methods.emplace(PathOf(kPredictionService, name), std::move(method));
  };
  add("Predict", Method{[&backend, offload](Call* call) {
        if (offload != nullptr && offload->Take(call)) return;
        SubmitPredict(kPredict, call, backend);
      }});
  for (const ExamplesMessages& messages : kExamplesMessages) {
    add(messages.api,
        Method{[&backend, &messages](Call* call) { SubmitExamples(messages, call, backend); }});
  }
  add("GetModelMetadata",
      MessageMethod<GetModelMetadataRequest, GetModelMetadataResponse>(
          [&backend](const GetModelMetadataRequest& request, GetModelMetadataResponse* response) {
            return Describe(*backend.models, request, response);
          }));
  return methods;
}

}  // namespace colcast::rpc
