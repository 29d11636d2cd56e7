#include "server/models/serving_table.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

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

// Says why `label` names no serving version; empty if it names one.
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

namespace {

constexpr size_t kMaxNamesInMessage = 10;

Status StillLoading(const std::string& model) {
  return Unavailable("model ", model, " is being loaded; try again later or on another server");
}

Status NoVersionLoaded(const std::string& model) {
  return NotFound("Servable not found for request: Latest(", model, "): no version loaded");
}

Status NoSuchModel(const std::string& model, const ServingModels& models) {
  std::vector<std::string> names;
  for (const auto& entry : models) names.push_back('"' + entry.first + '"');
  std::sort(names.begin(), names.end());
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMaxNamesInMessage); ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMaxNamesInMessage) list += ", ...";
  return NotFound("Servable not found for request: Latest(", model, "): this server serves ",
                  names.empty() ? "no model" : list);
}

Status NoSuchVersion(const std::string& name, int64_t version, const ServingModel& model) {
  std::string list;
  for (const auto& entry : model.versions) {
    list += (list.empty() ? "" : ", ") + std::to_string(entry.first);
  }
  const size_t serving = model.versions.size();
  return NotFound("Servable not found for request: Specific(", name, ", ", version, "): ",
                  serving == 0   ? "no version serves"
                  : serving == 1 ? "version " + list + " is the one that serves"
                                 : "versions " + list + " serve");
}

Status FindAmong(const ServingModels& models, const ModelSpec& spec,
                 std::shared_ptr<const Servable>* servable) {
  const auto model = models.find(spec.name);
  if (model == models.end()) return NoSuchModel(spec.name, models);
  const ServingModel& serving = model->second;
  int64_t version = 0;
  if (spec.version_label) {
    Status status = ResolveLabel(serving.labels, *spec.version_label, &version);
    if (!status.ok()) return status;
  } else if (spec.version) {
    version = *spec.version;
  } else {
    if (serving.versions.empty()) {
      return serving.loading ? StillLoading(spec.name) : NoVersionLoaded(spec.name);
    }
    *servable = serving.versions.rbegin()->second;
    return OkStatus();
  }
  const auto found = serving.versions.find(version);
  if (found == serving.versions.end()) {
    return serving.versions.empty() && serving.loading ? StillLoading(spec.name)
                                                       : NoSuchVersion(spec.name, version, serving);
  }
  *servable = found->second;
  return OkStatus();
}

}  // namespace

Status FirstModelsLoad() {
  return Unavailable(
      "this server is loading its first models; try again later or on another server");
}

void ServingTable::Replace(ServingModels models, bool ready) {
  {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    models_.swap(models);
    ready_ = ready;
  }
  // `models`, now the previous table, is freed after the lock is released.
}

Status ServingTable::Find(const ModelSpec& spec, std::shared_ptr<const Servable>* servable) const {
  if (spec.name.empty()) return InvalidArgument("model_spec has no name");
  std::shared_lock<std::shared_mutex> lock(mutex_);
  Status status = FindAmong(models_, spec, servable);
  if (status.code == StatusCode::kNotFound && !ready_) return FirstModelsLoad();
  return status;
}

}  // namespace colcast::models
