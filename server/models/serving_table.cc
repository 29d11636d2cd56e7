#include "server/models/serving_table.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "server/models/labels.h"

namespace colcast::models {
namespace {

constexpr size_t kMaxNamesInMessage = 10;

Status StillLoading(const std::string& model) {
  return Unavailable("model ", model, " is being loaded; try again or elsewhere");
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
  return NotFound("Servable not found for request: Specific(", name, ", ", version, "): version ",
                  list, model.versions.size() == 1 ? " is the one that serves" : " serve");
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
  return Unavailable("this server is loading its first models; try again or elsewhere");
}

void ServingTable::Replace(ServingModels models, bool ready) {
  {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    models_.swap(models);
    ready_ = ready;
  }
  // The previous table is freed here, without the lock.
}

Status ServingTable::Find(const ModelSpec& spec, std::shared_ptr<const Servable>* servable) const {
  if (spec.name.empty()) return InvalidArgument("model_spec has no name");
  std::shared_lock<std::shared_mutex> lock(mutex_);
  Status status = FindAmong(models_, spec, servable);
  if (status.code == StatusCode::kNotFound && !ready_) return FirstModelsLoad();
  return status;
}

}  // namespace colcast::models
