#include "server/inference/servable.h"

#include <utility>

namespace colcast::inference {

Status Servable::Create(std::string name, int64_t version, std::unique_ptr<engine::Model> model,
                        std::shared_ptr<const Servable>* servable, const Batching& batching,
                        ItemSources items) {
  std::shared_ptr<Servable> made(new Servable);
  if (!made->signatures_.ParseFromString(model->description().signatures)) {
    return Internal("the signatures of model \"", name, "\" version ", version, " do not parse");
  }
  made->batch_rules_ = batching.rules;
  for (const auto& [signature, def] : made->signatures()) {
    made->classes_[signature] = std::make_unique<scheduling::RequestClass>(batching.limits);
  }
  for (const auto& [signature, of] : made->classes_) made->by_number_.push_back(of.get());
  if (!items.tables.empty()) {
    made->items_ = std::make_unique<const ItemLookup>(std::move(items), made->signatures());
  }
  made->name_ = std::move(name);
  made->version_ = version;
  made->model_ = std::move(model);
  *servable = std::move(made);
  return OkStatus();
}

std::string_view Servable::SignatureLabel(std::string_view requested) const {
  const auto found = signatures().find(requested.empty() ? "serving_default" : requested);
  return found == signatures().end() ? std::string_view("unknown") : found->first;
}

scheduling::RequestClass* Servable::request_class(std::string_view requested) const {
  const auto found = classes_.find(requested.empty() ? "serving_default" : requested);
  return found == classes_.end() ? nullptr : found->second.get();
}

}  // namespace colcast::inference
