#include "server/models/model_manager.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "server/base/log.h"
#include "server/base/machine.h"
#include "server/models/serving_table.h"

namespace colcast::models {
namespace {

// The longest sleep. Waiting until Clock::time_point::max() would overflow.
constexpr std::chrono::hours kLongest(1);

constexpr char kConfiguration[] = "configuration";
constexpr char kReadyLabels[] = "ready labels";

std::string Name(const std::string& model) { return "model \"" + model + '"'; }

std::string Name(const std::string& model, int64_t version) {
  return Name(model) + " version " + std::to_string(version);
}

std::string Seconds(std::chrono::nanoseconds duration) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g s", std::chrono::duration<double>(duration).count());
  return text;
}

std::string WarmupOf(const LoadReport& report) {
  if (report.warmup_requests == 0) return "not warmed up";
  return "warmed up with " + std::to_string(report.warmup_requests) + " requests in " +
         Seconds(report.warmup_time);
}

std::vector<int64_t> ReadyVersions(const ModelState& model) {
  std::vector<int64_t> ready;
  for (const Version& version : model.versions()) {
    if (version.phase == Phase::kReady) ready.push_back(version.directory.version);
  }
  return ready;
}

std::vector<std::string> OutdatedVersions(const ModelState& model) {
  std::vector<std::string> warnings;
  for (const Version& version : model.versions()) {
    if (!version.is_outdated) continue;
    warnings.push_back(Name(model.config().name, version.directory.version) +
                       " serves as it was loaded, but files were added or changed in " +
                       version.directory.path +
                       " since; publish them under another version number");
  }
  return warnings;
}

// While a model moves to a new base path, two versions may have the same number. Reports the
// serving one or, if neither serves, the aspired one.
void AddStatus(const Version& version, std::vector<VersionStatus>* statuses) {
  const VersionStatus status = StatusOf(version);
  const bool is_new = statuses->empty() || statuses->back().version != status.version;
  if (is_new) {
    statuses->push_back(status);
  } else if (statuses->back().state != VersionState::kAvailable &&
             (version.aspired || status.state == VersionState::kAvailable)) {
    statuses->back() = status;
  }
}

}  // namespace

ModelManager::ModelManager(Options options, const engine::Engine* engine)
    : options_(std::move(options)),
      unloader_(std::max(1, options_.num_unload_threads)),
      loader_(options_.loader, engine) {
  std::lock_guard<std::mutex> lock(mutex_);
  Apply(options_.models);
}

ModelManager::~ModelManager() { Stop(); }

Status ModelManager::Start() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (Status status = MayApply(options_.models); !status.ok()) return status;
  file_models_ = options_.models;
  next_config_poll_ = NextConfigPoll();
  if (Status status = StartThread(
          "the models", [this] { Run(); }, &thread_);
      !status.ok()) {
    return status;
  }
  changed_.wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || started_.has_value();
  });
  return started_ ? *started_ : Error(StatusCode::kCancelled, "stopped before a model served");
}

void ModelManager::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void ModelManager::PollNow() {
  std::lock_guard<std::mutex> lock(mutex_);
  next_config_poll_ = {};
  next_poll_ = {};
  woken_ = true;
  changed_.notify_all();
}

Clock::time_point ModelManager::NextConfigPoll() const {
  return options_.config_file_poll_wait.count() == 0
             ? Clock::time_point::max()
             : Clock::now() + options_.config_file_poll_wait;
}

Status ModelManager::Reload(std::vector<ModelConfig> models, ReloadDone done) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return Unavailable("the server is shutting down");
  if (Status status = MayApply(models); !status.ok()) return status;
  std::map<std::string, std::string> new_ones;
  for (const ModelConfig& model : models) {
    const auto known = models_.find(model.name);
    const bool is_new = known == models_.end() || known->second.leaving() ||
                        known->second.config().base_path != model.base_path;
    if (is_new) new_ones.emplace(model.name, model.base_path);
  }
  LogInfo("configuration with " + std::to_string(models.size()) + " models, " +
          std::to_string(new_ones.size()) + " of them new");
  Apply(std::move(models));
  waiters_.Add(std::move(new_ones), std::move(done));
  return OkStatus();
}

Status ModelManager::GetStatus(const ModelSpec& spec, std::vector<VersionStatus>* statuses) const {
  if (spec.name.empty()) return InvalidArgument("model_spec has no name");
  std::lock_guard<std::mutex> lock(mutex_);
  Status status = FindStatus(spec, statuses);
  if (status.code == StatusCode::kNotFound && !ready()) return FirstModelsLoad();
  return status;
}

Status ModelManager::FindStatus(const ModelSpec& spec, std::vector<VersionStatus>* statuses) const {
  const auto model = models_.find(spec.name);
  if (model == models_.end()) {
    return NotFound("Could not find any versions of model ", spec.name,
                    ": this server does not have that model");
  }
  const ModelConfig& config = model->second.config();
  std::optional<int64_t> requested = spec.version;
  if (spec.version_label) {
    Status status = ResolveLabel(config.labels, *spec.version_label, &requested.emplace());
    if (!status.ok()) return status;
  }
  statuses->clear();
  for (const Version& version : model->second.versions()) {
    if (requested && *requested != version.directory.version) continue;
    AddStatus(version, statuses);
  }
  if (!statuses->empty()) return OkStatus();
  if (!model->second.listed()) {
    return Unavailable("the versions of model ", spec.name, " are not known yet; try again");
  }
  return requested ? NotFound("Could not find version ", *requested, " of model ", spec.name)
                   : NotFound("Could not find any versions of model ", spec.name,
                              ": none is under ", config.base_path);
}

std::vector<ModelSnapshot> ModelManager::Models() const {
  std::vector<ModelSnapshot> models;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& entry : models_) models.push_back(entry.second.Snapshot());
  return models;
}

// Checks the files, acts on changes, and sleeps until there is more to do.
void ModelManager::Run() {
  std::vector<std::function<void()>> answers;
  while (true) {
    PollConfigFile();
    PollBasePaths();
    std::unique_lock<std::mutex> lock(mutex_);
    UnloadAndLoad();
    NoteReadiness();
    PublishTable();
    answers = waiters_.TakeSettled(models_);
    if (answers.empty()) {
      changed_.wait_until(lock, NextWake(), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || woken_;
      });
      woken_ = false;
      if (stopping_) break;
    }
    lock.unlock();
    for (const std::function<void()>& answer : answers) answer();
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    answers = waiters_.TakeAll(Unavailable("the server is shutting down"));
  }
  for (const std::function<void()>& answer : answers) answer();
}

void ModelManager::PollConfigFile() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (options_.config_file.empty() || Clock::now() < next_config_poll_) return;
    next_config_poll_ = NextConfigPoll();
  }
  std::vector<ModelConfig> models;
  Status status = ReadModelConfigFile(options_.config_file, options_.logs, &models);
  if (status.ok() && (models != file_models_ || !file_applied_)) {
    status = Reload(models, [](const Status& settled) {
      if (!settled.ok()) LogError(settled.message);
    });
    file_models_ = std::move(models);
    file_applied_ = status.ok();
  }
  if (status.ok()) {
    warnings_.Log(kConfiguration, {});
  } else {
    warnings_.Log(kConfiguration,
                  {status.message + "; the versions that served before keep serving"});
  }
}

void ModelManager::PollBasePaths() {
  std::vector<std::pair<ModelConfig, std::vector<int64_t>>> configs;  // with their serving versions
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (Clock::now() < next_poll_) return;
    next_poll_ = options_.poll_wait.count() == 0 ? Clock::time_point::max()
                                                 : Clock::now() + options_.poll_wait;
    for (const auto& [name, model] : models_) {
      if (!model.leaving()) configs.emplace_back(model.config(), ReadyVersions(model));
    }
  }
  for (const auto& [config, serving] : configs) {
    const BasePathListing listing = ListVersions(config.base_path);
    warnings_.Log(Name(config.name), VersionWarnings(config, listing, serving));
    std::vector<VersionDirectory> selected = SelectVersions(config.policy, listing.versions);
    for (VersionDirectory& directory : selected) directory.files = FilesOf(directory.path);
    std::lock_guard<std::mutex> lock(mutex_);
    const auto model = models_.find(config.name);
    const bool outdated =
        model == models_.end() || model->second.leaving() || !(model->second.config() == config);
    if (outdated) continue;
    if (listing.readable) {
      model->second.SetAspiredVersions(selected);
      warnings_.Log(Name(config.name) + ": files", OutdatedVersions(model->second));
    } else {
      // Keeps the versions: the file system of the base path may be temporarily unmounted.
      model->second.KeepAspiredVersions();
    }
  }
}

Status ModelManager::MayApply(const std::vector<ModelConfig>& models) const {
  return CheckLabels(models, models_, options_.allow_labels_for_unavailable_versions);
}

void ModelManager::Apply(std::vector<ModelConfig> models) {
  std::set<std::string> names;
  for (const ModelConfig& config : models) names.insert(config.name);
  for (auto& [name, model] : models_) {
    if (names.count(name) == 0) model.Leave();
  }
  if (options_.on_configured) options_.on_configured(models);
  for (ModelConfig& config : models) {
    const auto [place, is_new] = models_.try_emplace(config.name, config);
    if (!is_new) place->second.SetConfig(std::move(config));
  }
  PublishTable();
  next_poll_ = {};
  woken_ = true;
  changed_.notify_all();
}

void ModelManager::UnloadAndLoad() {
  for (auto entry = models_.begin(); entry != models_.end();) {
    auto& [name, model] = *entry;
    for (const Version* version : model.ToUnload()) {
      LogInfo(Name(name, version->directory.version) + ": no longer serving",
              {name, version->directory.version});
      model.StartUnloading(version->directory.path);
    }
    const bool gone = model.leaving() && model.idle();
    entry = gone ? models_.erase(entry) : std::next(entry);
  }
  for (auto& [name, model] : models_) {
    for (const Version* version : model.ToLoad(Clock::now())) {
      if (loads_in_progress_ < MaxLoads()) StartLoad(&model, *version);
    }
  }
}

// Until the server is ready, allows a load per core: there are no requests that loads could delay.
int ModelManager::MaxLoads() const {
  const int configured = std::max(1, options_.num_load_threads);
  return started_ ? configured : std::max(configured, AvailableCores());
}

void ModelManager::StartLoad(ModelState* model, const Version& version) {
  const std::string& name = model->config().name;
  const VersionDirectory directory = version.directory;
  model->StartLoading(directory.path);
  ++loads_in_progress_;
  LogInfo(Name(name, directory.version) + ": loading " + directory.path, {name, directory.version});
  const bool ready = started_.has_value();
  // A crash while loading this model must not take other models down.
  const bool has_others =
      models_.size() > 1 || std::any_of(models_.begin(), models_.end(),
                                        [](const auto& entry) { return entry.second.available(); });
  const Status status =
      loader_.Start({name, directory, /*low_priority=*/ready, /*check=*/has_others,
                     /*another_serves=*/model->available()},
                    [this, name, directory](const LoadReport& report, auto servable) {
                      OnLoaded(name, directory, report, std::move(servable));
                    });
  if (!status.ok()) OnLoadFailed(model, directory, status);
}

void ModelManager::OnLoaded(const std::string& name, const VersionDirectory& directory,
                            const LoadReport& report, std::shared_ptr<const Servable> servable) {
  std::lock_guard<std::mutex> lock(mutex_);
  ModelState& model = models_.at(name);
  woken_ = true;
  changed_.notify_all();
  if (report.status.ok()) {
    --loads_in_progress_;
    model.Loaded(directory.path, unloader_.Share(std::move(servable), [this, name, directory] {
      OnUnloaded(name, directory);
    }));
    PublishTable();
    LogInfo(Name(name, directory.version) + ": serving, loaded in " + Seconds(report.load_time) +
                ", " + WarmupOf(report),
            {name, directory.version});
    for (const std::string& note : report.notes) {
      LogInfo(Name(name, directory.version) + ": " + note, {name, directory.version});
    }
    return;
  }
  OnLoadFailed(&model, directory, report.status);
}

void ModelManager::OnLoadFailed(ModelState* model, const VersionDirectory& directory,
                                const Status& status) {
  --loads_in_progress_;
  const RetryPolicy& retries = options_.retries;
  const bool again = model->LoadFailed(directory.path, status, retries, Clock::now());
  LogError(status.message +
               (again ? "; next attempt in " + Seconds(retries.interval) : "; given up") +
               (model->available() ? "; the versions that served before keep serving" : ""),
           {model->config().name, directory.version});
}

void ModelManager::OnUnloaded(const std::string& name, const VersionDirectory& directory) {
  LogInfo(Name(name, directory.version) + ": unloaded", {name, directory.version});
  std::lock_guard<std::mutex> lock(mutex_);
  models_.at(name).Unloaded(directory.path);
  woken_ = true;
  changed_.notify_all();
}

void ModelManager::PublishTable() {
  ServingModels serving;
  for (const auto& [name, model] : models_) {
    if (model.leaving()) continue;
    ServingModel& entry = serving[name];
    entry.labels = model.config().labels;
    entry.loading = !model.settled();
    for (const Version& version : model.versions()) {
      if (version.servable == nullptr) continue;
      std::shared_ptr<const Servable>& place = entry.versions[version.directory.version];
      if (place == nullptr || version.aspired) place = version.servable;
    }
  }
  table_.Replace(std::move(serving), ready());
}

void ModelManager::NoteReadiness() {
  if (started_) return;
  bool all_settled = true, one_serves = models_.empty(), all_given_up = !models_.empty();
  Status error;
  for (const auto& [name, model] : models_) {
    all_settled = all_settled && model.settled();
    one_serves = one_serves || model.available();
    all_given_up = all_given_up && model.given_up();
    if (error.ok()) error = model.FirstError();
  }
  if (all_settled && one_serves) {
    const std::vector<std::string> missing = MissingLabels(options_.ready_labels, models_);
    warnings_.Log(kReadyLabels, missing);
    if (missing.empty()) started_ = OkStatus();
  }
  if (all_given_up && options_.fail_if_nothing_loads) started_ = error;
  changed_.notify_all();
}

Clock::time_point ModelManager::NextWake() const {
  Clock::time_point next = std::min(next_poll_, Clock::now() + kLongest);
  if (!options_.config_file.empty()) next = std::min(next, next_config_poll_);
  if (loads_in_progress_ < MaxLoads()) {
    for (const auto& entry : models_) {
      const std::optional<Clock::time_point> retry = entry.second.NextRetry();
      if (retry) next = std::min(next, *retry);
    }
  }
  return next;
}

}  // namespace colcast::models
