#include "server/inference/signature.h"

#include "server/wire/data_type.h"

namespace colcast::inference {
namespace {

const std::string& DefaultName() {
  static const auto* const kDefault = new std::string("serving_default");
  return *kDefault;
}

}  // namespace

const std::string& SignatureNameOf(const tensorflow::serving::ModelSpec& spec) {
  return spec.signature_name().empty() ? DefaultName() : spec.signature_name();
}

std::string_view SignatureNameOf(std::string_view requested) {
  return requested.empty() ? DefaultName() : requested;
}

Status FindSignature(const Servable& servable, std::string_view name,
                     const tensorflow::SignatureDef** signature) {
  const auto found = servable.signatures().find(std::string(name));
  if (found == servable.signatures().end()) {
    return InvalidArgument("No signature was found with the name: ", Quoted(name),
                           "; the model has ", KeyList(servable.signatures()));
  }
  *signature = &found->second;
  return OkStatus();
}

Status CheckMethodName(const Servable& servable, std::string_view signature_name,
                       const CallOptions& options) {
  if (!options.check_method_names) return OkStatus();
  const auto found = servable.signatures().find(std::string(SignatureNameOf(signature_name)));
  if (found == servable.signatures().end()) return OkStatus();  // the run will report the error
  const std::string& method_name = found->second.method_name();
  for (const char* known : {kPredictMethodName, kClassifyMethodName, kRegressMethodName}) {
    if (method_name == known) return OkStatus();
  }
  return Internal("Expected prediction signature method_name to be one of {", kPredictMethodName,
                  ", ", kClassifyMethodName, ", ", kRegressMethodName,
                  "}. Was: ", Quoted(method_name));
}

}  // namespace colcast::inference
