#include "server/inference/predict.h"

#include <string>

#include "server/wire/describe.h"
#include "server/wire/predict_request.h"

namespace colcast::inference {
namespace {

using Method = Status (engine::Model::*)(const colcast::DecodedRequest&,
                                         std::unique_ptr<engine::Outputs>*) const;

Status Run(Method method, const Servable& servable,
           const tensorflow::serving::PredictRequest& request,
           std::unique_ptr<engine::Outputs>* outputs) {
  std::string message;
  if (!request.SerializeToString(&message)) {
    return ResourceExhausted("the request takes over 2 GiB as a PredictRequest");
  }
  colcast::DecodedRequest decoded;
  if (Status status = DecodePredictRequest(Bytes(message), &decoded); !status.ok()) return status;
  return (servable.model().*method)(decoded, outputs);
}

}  // namespace

Status Predict(const Servable& servable, const tensorflow::serving::PredictRequest& request,
               std::unique_ptr<engine::Outputs>* outputs) {
  return Run(&engine::Model::Predict, servable, request, outputs);
}

Status PredictTogether(const Servable& servable, const tensorflow::serving::PredictRequest& request,
                       std::unique_ptr<engine::Outputs>* outputs) {
  return Run(&engine::Model::PredictTogether, servable, request, outputs);
}

Status CheckMethodName(const Servable& servable, std::string_view signature_name,
                       const CallOptions& options) {
  if (!options.check_method_names) return OkStatus();
  const std::string name(signature_name.empty() ? "serving_default" : signature_name);
  const auto found = servable.signatures().find(name);
  if (found == servable.signatures().end()) return OkStatus();  // the run will say so
  const std::string& method_name = found->second.method_name();
  for (const char* known : {kPredictMethodName, kClassifyMethodName, kRegressMethodName}) {
    if (method_name == known) return OkStatus();
  }
  return Internal("Expected prediction signature method_name to be one of {", kPredictMethodName,
                  ", ", kClassifyMethodName, ", ", kRegressMethodName,
                  "}. Was: ", Quoted(method_name));
}

}  // namespace colcast::inference
