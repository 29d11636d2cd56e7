#include "server/inference/example_signature.h"

#include <algorithm>
#include <vector>

#include "server/inference/example_batch.h"
#include "server/wire/describe.h"

namespace colcast::inference {
namespace {

// The keys of a protobuf map, sorted: {classes, scores}.
template <typename Map>
std::string KeyList(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  std::string list = "{";
  for (const std::string& key : keys) list += (list.size() > 1 ? ", " : "") + key;
  return list + "}";
}

}  // namespace

const std::string& SignatureNameOf(const tensorflow::serving::ModelSpec& spec) {
  static const auto* const kDefault = new std::string("serving_default");
  return spec.signature_name().empty() ? *kDefault : spec.signature_name();
}

Status FindSignature(const Servable& servable, const std::string& name,
                     const tensorflow::SignatureDef** signature) {
  const auto found = servable.signatures().find(name);
  if (found == servable.signatures().end()) {
    return InvalidArgument("No signature was found with the name: ", Quoted(name),
                           "; the model has ", KeyList(servable.signatures()));
  }
  *signature = &found->second;
  return OkStatus();
}

Status CheckExampleSignature(const tensorflow::SignatureDef& signature, const char* kind,
                             const char* method_name, const CallOptions& options) {
  if (options.check_method_names && signature.method_name() != method_name) {
    return InvalidArgument("Expected ", kind, " signature method_name to be ", method_name,
                           ". Was: ", signature.method_name());
  }
  if (signature.inputs().size() == 1 && signature.inputs().contains(ExampleBatch::kInput)) {
    return OkStatus();
  }
  return InvalidArgument("No ", kind, " inputs found in SignatureDef: expected one input, \"",
                         ExampleBatch::kInput, "\", that takes serialized tf.Examples; found ",
                         KeyList(signature.inputs()));
}

std::string OutputNames(const tensorflow::SignatureDef& signature) {
  return KeyList(signature.outputs());
}

void SetAnsweringModel(const tensorflow::serving::ModelSpec& requested, const Servable& servable,
                       tensorflow::serving::ModelSpec* answered) {
  answered->set_name(requested.name());
  answered->set_signature_name(SignatureNameOf(requested));
  answered->mutable_version()->set_value(servable.version());
}

}  // namespace colcast::inference
