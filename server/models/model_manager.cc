#include "server/models/model_manager.h"

#include <algorithm>
#include <utility>

#include "server/log.h"

namespace colcast::models {

ModelManager::ModelManager(Options options, const engine::Engine* engine)
    : options_(std::move(options)), engine_(engine) {}

ModelManager::~ModelManager() {
  Stop();
  if (poller_.joinable()) poller_.join();
}

Status ModelManager::Start() {
  bool said_so = false;
  std::optional<VersionDirectory> first;
  while (!(first = NextVersion())) {
    if (!said_so) {
      LogWarning("model \"" + options_.model_name + "\": no version under " + options_.base_path +
                 " yet (a version is a directory with a number for a name and a saved_model.pb "
                 "in it); waiting for one");
      said_so = true;
    }
    if (!WaitForNextPoll())
      return Error(StatusCode::kCancelled, "stopped before a model was found");
  }
  Status status = LoadAndServe(*first);
  if (status.ok()) poller_ = std::thread([this] { Poll(); });
  return status;
}

void ModelManager::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_requested_.notify_all();
}

Status ModelManager::Find(const ModelSpec& spec, std::shared_ptr<const Servable>* servable) const {
  if (Status status = Check(spec); !status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  if (serving_ == nullptr) {
    return NotFound("Servable not found for request: Latest(", spec.name, "): no version loaded");
  }
  if (spec.version && *spec.version != serving_->version()) {
    return NotFound("Servable not found for request: Specific(", spec.name, ", ", *spec.version,
                    "): version ", serving_->version(), " is the one that serves");
  }
  *servable = serving_;
  return OkStatus();
}

Status ModelManager::GetStatus(const ModelSpec& spec, std::vector<VersionStatus>* statuses) const {
  if (Status status = Check(spec); !status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  statuses->clear();
  for (const VersionStatus& status : statuses_) {
    if (!spec.version || *spec.version == status.version) statuses->push_back(status);
  }
  if (!statuses->empty()) return OkStatus();
  return spec.version ? NotFound("model \"", spec.name, "\" has no version ", *spec.version)
                      : NotFound("model \"", spec.name, "\" has no version");
}

std::vector<ModelSnapshot> ModelManager::Models() const {
  ModelSnapshot model{options_.model_name, options_.base_path, {}};
  std::lock_guard<std::mutex> lock(mutex_);
  for (const VersionStatus& status : statuses_) {
    VersionSnapshot version;
    version.status = status;
    version.path = options_.base_path + '/' + std::to_string(status.version);
    if (serving_ != nullptr && serving_->version() == status.version) version.servable = serving_;
    model.versions.push_back(std::move(version));
  }
  return {std::move(model)};
}

Status ModelManager::Check(const ModelSpec& spec) const {
  if (spec.name.empty()) return InvalidArgument("model_spec has no name");
  if (spec.name != options_.model_name) {
    return NotFound("Servable not found for request: Latest(", spec.name,
                    "): this server serves \"", options_.model_name, "\"");
  }
  if (spec.version_label) {
    return InvalidArgument("Unrecognized servable version label: ", *spec.version_label);
  }
  return OkStatus();
}

std::optional<VersionDirectory> ModelManager::NextVersion() const {
  const std::vector<VersionDirectory> versions = ListVersions(options_.base_path);
  if (versions.empty()) return std::nullopt;
  const VersionDirectory& highest = versions.back();
  std::lock_guard<std::mutex> lock(mutex_);
  for (const VersionStatus& seen : statuses_) {
    if (seen.version == highest.version) return std::nullopt;
  }
  return highest;
}

Status ModelManager::LoadAndServe(const VersionDirectory& next) {
  const std::string what =
      "model \"" + options_.model_name + "\" version " + std::to_string(next.version);
  LogInfo(what + ": loading " + next.path);
  SetState(next.version, VersionState::kLoading);
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<engine::Model> model;
  std::shared_ptr<const Servable> servable;
  Status status = engine_->Load(next.path, options_.tags, &model);
  if (status.ok()) {
    status = Servable::Create(options_.model_name, next.version, std::move(model), &servable);
  }
  const std::chrono::steady_clock::duration took = std::chrono::steady_clock::now() - start;
  if (options_.on_load) {
    options_.on_load({options_.model_name, next.version, /*attempt=*/1, status, took, {}});
  }
  if (!status.ok()) {
    status.message = what + " can not be loaded from " + next.path + ": " + status.message;
    SetState(next.version, VersionState::kEnd, status);
    return status;
  }
  SetState(next.version, VersionState::kAvailable);
  std::shared_ptr<const Servable> old;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    old = std::exchange(serving_, std::move(servable));
  }
  LogInfo(what + ": serving, loaded in " +
          std::to_string(std::chrono::duration<double>(took).count()).substr(0, 5) + " s");
  if (old != nullptr) {
    SetState(old->version(), VersionState::kUnloading);
    retired_.push_back(std::move(old));
  }
  return OkStatus();
}

void ModelManager::SetState(int64_t version, VersionState state, Status error) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto place = std::lower_bound(
      statuses_.begin(), statuses_.end(), version,
      [](const VersionStatus& status, int64_t wanted) { return status.version < wanted; });
  if (place != statuses_.end() && place->version == version) {
    *place = {version, state, std::move(error)};
  } else {
    statuses_.insert(place, {version, state, std::move(error)});
  }
}

void ModelManager::Poll() {
  while (WaitForNextPoll()) {
    ReleaseRetired();
    const std::optional<VersionDirectory> next = NextVersion();
    if (!next) continue;
    if (Status status = LoadAndServe(*next); !status.ok()) {
      LogError(status.message + "; the version before it goes on serving");
    }
  }
}

void ModelManager::ReleaseRetired() {
  const auto unused = std::partition(retired_.begin(), retired_.end(),
                                     [](const auto& served) { return served.use_count() > 1; });
  std::for_each(unused, retired_.end(), [this](auto& served) {
    const int64_t version = served->version();
    served.reset();
    SetState(version, VersionState::kEnd);
    LogInfo("model \"" + options_.model_name + "\" version " + std::to_string(version) +
            ": unloaded");
  });
  retired_.erase(unused, retired_.end());
}

bool ModelManager::WaitForNextPoll() {
  std::unique_lock<std::mutex> lock(mutex_);
  return !stop_requested_.wait_for(lock, options_.poll_wait, [this] { return stopping_; });
}

}  // namespace colcast::models
