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

// Why a label names no version that serves; empty if it does.
std::string WhyMissing(const std::string& label, const ModelState* model) {
  if (model == nullptr || model->leaving()) return "the model is not configured";
  const auto found = model->config().labels.find(label);
  if (found == model->config().labels.end()) return "the configuration has no such label";
  if (model->FindReady(found->second) != nullptr) return "";
  return "version " + std::to_string(found->second) + " does not serve";
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

std::vector<std::string> MissingLabels(const std::vector<ReadyLabel>& awaited,
                                       const std::map<std::string, ModelState>& present) {
  std::vector<std::string> missing;
  for (const auto& [model, label] : awaited) {
    const auto found = present.find(model);
    const std::string why = WhyMissing(label, found == present.end() ? nullptr : &found->second);
    if (why.empty()) continue;
    missing.push_back("not ready without model \"" + model + "\" label \"" + label +
                      "\" (--ready_labels): " + why);
  }
  return missing;
}

}  // namespace colcast::models
