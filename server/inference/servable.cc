#include "server/inference/servable.h"

#include <utility>

namespace colcast::inference {

Status Servable::Create(std::string name, int64_t version, std::unique_ptr<engine::Model> model,
                        std::shared_ptr<const Servable>* servable) {
  std::shared_ptr<Servable> made(new Servable);
  if (!made->signatures_.ParseFromString(model->signatures())) {
    return Internal("the signatures of model \"", name, "\" version ", version, " do not parse");
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

}  // namespace colcast::inference
