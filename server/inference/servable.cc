#include "server/inference/servable.h"

#include <utility>

#include "server/wire/data_type.h"

namespace colcast::inference {

std::string_view SignatureNameOf(std::string_view requested) {
  return requested.empty() ? "serving_default" : requested;
}

Status Servable::Create(std::string name, int64_t version, std::unique_ptr<engine::Model> model,
                        std::shared_ptr<const Servable>* servable, const Batching& batching,
                        ItemSources items) {
  std::shared_ptr<Servable> made(new Servable);
  if (!made->signatures_.ParseFromString(model->description().signatures)) {
    return Internal("the signatures of model \"", name, "\" version ", version, " do not parse");
  }
  made->batch_rules_ = batching.rules;
  for (const auto& [signature, def] : made->signatures()) {
    made->by_name_[signature] = {signature, &def, 0,
                                 std::make_unique<scheduling::RequestClass>(batching.limits)};
  }
  int number = 0;
  for (auto& [signature, of] : made->by_name_) of.number = number++;
  if (!items.tables.empty()) {
    made->items_ = std::make_unique<const ItemLookup>(std::move(items), made->signatures());
  }
  model->LogAs({name, version});
  made->name_ = std::move(name);
  made->version_ = version;
  made->model_ = std::move(model);
  *servable = std::move(made);
  return OkStatus();
}

const Signature* Servable::Find(std::string_view requested) const {
  const auto found = by_name_.find(SignatureNameOf(requested));
  return found == by_name_.end() ? nullptr : &found->second;
}

Status Servable::NoSignature(std::string_view requested) const {
  return InvalidArgument(
      "No signature was found with the name: ", Quoted(SignatureNameOf(requested)),
      "; the model has ", KeyList(signatures()));
}

Status CheckMethodName(const Signature* signature, const CallOptions& options) {
  if (!options.check_method_names || signature == nullptr) return OkStatus();
  const std::string& method_name = signature->def->method_name();
  for (const char* known : {kPredictMethodName, kClassifyMethodName, kRegressMethodName}) {
    if (method_name == known) return OkStatus();
  }
  return Internal("Expected prediction signature method_name to be one of {", kPredictMethodName,
                  ", ", kClassifyMethodName, ", ", kRegressMethodName,
                  "}. Was: ", Quoted(method_name));
}

}  // namespace colcast::inference
