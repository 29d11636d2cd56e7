#include "server/models/labels.h"

namespace colcast::models {
namespace {

Status CheckLabel(const std::string& label, int64_t version, const ModelConfig& wanted,
                  const ModelState* present, bool allow_unavailable) {
  bool moves = false;
  if (present != nullptr) {
    if (present->FindReady(version) != nullptr) return OkStatus();
    const auto before = present->config().labels.find(label);
    moves = before != present->config().labels.end() && before->second != version;
  }
  if (allow_unavailable && !moves) return OkStatus();
  return FailedPrecondition("Request to assign label to version ", version, " of model ",
                            wanted.name, ", which is not currently available for inference: \"",
                            label,
                            "\" (--allow_version_labels_for_unavailable_models allows it for "
                            "labels that are new)");
}

}  // namespace

Status ResolveLabel(const std::map<std::string, int64_t>& labels, const std::string& label,
                    int64_t* version) {
  const auto found = labels.find(label);
  if (found == labels.end()) {
    return InvalidArgument("Unrecognized servable version label: ", label);
  }
  *version = found->second;
  return OkStatus();
}

Status CheckLabels(const std::vector<ModelConfig>& wanted,
                   const std::map<std::string, ModelState>& present, bool allow_unavailable) {
  for (const ModelConfig& model : wanted) {
    const auto found = present.find(model.name);
    const ModelState* const state = found == present.end() ? nullptr : &found->second;
    for (const auto& [label, version] : model.labels) {
      Status status = CheckLabel(label, version, model, state, allow_unavailable);
      if (!status.ok()) return status;
    }
  }
  return OkStatus();
}

}  // namespace colcast::models
