#include "server/models/model_state.h"

#include <algorithm>
#include <cassert>
#include <ctime>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

namespace colcast::models {
namespace {

// The status keeps at most this many ended versions that are no longer aspired.
constexpr size_t kMaxEnded = 20;

bool IsPending(const Version& version) {
  return version.phase == Phase::kNew || version.phase == Phase::kLoading ||
         version.phase == Phase::kRetrying;
}

bool HasEnded(const Version& version) {
  return version.phase == Phase::kGone || version.phase == Phase::kFailed;
}

bool IsReady(const Version& version) { return version.phase == Phase::kReady; }

bool IsAspired(const Version& version) { return version.aspired; }

bool LiesUnder(const std::filesystem::path& base_path, const std::filesystem::path& path) {
  return (base_path / "").parent_path() == path.parent_path();
}

// Whether the first attempt to load the version since it became aspired is pending or in progress.
bool AwaitsFirstAttempt(const Version& version) {
  if (version.phase == Phase::kUnloading) return version.aspired;
  return version.aspired && version.attempts <= 1 && version.error.ok() && IsPending(version);
}

void Restart(Version* version) {
  version->phase = Phase::kNew;
  version->attempts = 0;
  version->error = OkStatus();
}

void LookAgain(const VersionDirectory& directory, Version* version) {
  version->aspired = true;
  if (directory.files == 0) return;
  version->still = std::exchange(version->directory.files, directory.files) == directory.files;
  const bool is_other = version->still && version->tried_files != directory.files;
  const bool has_failed = version->phase == Phase::kFailed || version->phase == Phase::kRetrying;
  if (has_failed && is_other) Restart(version);
  version->is_outdated = version->phase == Phase::kReady && is_other;
}

VersionState ToState(Phase phase) {
  switch (phase) {
    case Phase::kNew:
      return VersionState::kStart;
    case Phase::kLoading:
    case Phase::kRetrying:
      return VersionState::kLoading;
    case Phase::kReady:
      return VersionState::kAvailable;
    case Phase::kUnloading:
      return VersionState::kUnloading;
    case Phase::kGone:
    case Phase::kFailed:
      break;
  }
  return VersionState::kEnd;
}

std::string WhyNot(const ModelState& model) {
  const Status error = model.FirstError();
  if (!error.ok()) return error.message;
  return "model \"" + model.config().name + "\": no version under " + model.config().base_path;
}

// The result of a reload; nullopt while one of its models has not settled under its base path.
std::optional<Status> Outcome(const std::map<std::string, std::string>& base_paths,
                              const std::map<std::string, ModelState>& models) {
  int failures = 0;
  std::string reasons;
  for (const auto& [name, base_path] : base_paths) {
    const auto model = models.find(name);
    const bool is_replaced = model == models.end() || model->second.leaving() ||
                             model->second.config().base_path != base_path;
    if (!is_replaced && !model->second.settled_at_base_path()) return std::nullopt;
    if (!is_replaced && model->second.available_at_base_path()) continue;
    reasons += failures++ > 0 ? "; " : "";
    reasons += is_replaced
                   ? "model \"" + name + "\": replaced by a later configuration before it served"
                   : WhyNot(model->second);
  }
  if (failures == 0) return OkStatus();
  return Error(StatusCode::kUnknown, failures, " model(s) did not become available: ", reasons);
}

std::function<void()> Answer(ReloadDone done, const Status& status) {
  return [done = std::move(done), status] { done(status); };
}

}  // namespace

void ModelState::SetConfig(ModelConfig config) {
  config_ = std::move(config);
  leaving_ = false;
  listed_ = false;
}

void ModelState::Leave() {
  leaving_ = true;
  SetAspiredVersions({});
}

void ModelState::SetAspiredVersions(const std::vector<VersionDirectory>& directories) {
  const bool is_first = !std::exchange(listed_, true);
  base_path_read_ = time(nullptr);
  for (Version& version : versions_) {
    const bool was_aspired = std::exchange(version.aspired, false);
    for (const VersionDirectory& directory : directories) {
      if (directory.path == version.directory.path) LookAgain(directory, &version);
    }
    if (version.aspired && !was_aspired && HasEnded(version)) Restart(&version);
    if (!version.aspired && (version.phase == Phase::kNew || version.phase == Phase::kRetrying)) {
      version.phase = version.error.ok() ? Phase::kGone : Phase::kFailed;
    }
  }
  for (const VersionDirectory& directory : directories) {
    const bool known = std::any_of(versions_.begin(), versions_.end(), [&](const Version& version) {
      return version.directory.path == directory.path;
    });
    if (known) continue;
    Version& added = versions_.emplace_back();
    added.directory = directory;
    added.still = is_first || directory.files == 0;
  }
  std::sort(versions_.begin(), versions_.end(), [](const Version& a, const Version& b) {
    return std::tie(a.directory.version, a.directory.path) <
           std::tie(b.directory.version, b.directory.path);
  });
  ForgetOldest();
}

std::vector<const Version*> ModelState::ToUnload() const {
  const bool one_is_aspired = AnyOf(IsAspired);
  const bool aspired_one_is_ready =
      AnyOf([](const Version& version) { return version.aspired && IsReady(version); });
  std::vector<const Version*> not_aspired;
  for (const Version& version : versions_) {
    if (!version.aspired && IsReady(version)) not_aspired.push_back(&version);
  }
  if (one_is_aspired && !aspired_one_is_ready && !not_aspired.empty()) not_aspired.pop_back();
  return not_aspired;
}

std::vector<const Version*> ModelState::ToLoad(Clock::time_point now) const {
  std::vector<const Version*> due;
  for (auto version = versions_.rbegin(); version != versions_.rend(); ++version) {
    const bool retry = version->phase == Phase::kRetrying && version->retry_at <= now;
    const bool first = version->phase == Phase::kNew && version->still;
    if (version->aspired && (first || retry)) due.push_back(&*version);
  }
  return due;
}

std::optional<Clock::time_point> ModelState::NextRetry() const {
  std::optional<Clock::time_point> next;
  for (const Version& version : versions_) {
    if (version.phase != Phase::kRetrying) continue;
    next = next ? std::min(*next, version.retry_at) : version.retry_at;
  }
  return next;
}

void ModelState::StartLoading(const std::string& path) {
  Version& version = At(path);
  version.phase = Phase::kLoading;
  version.tried_files = version.directory.files;
  ++version.attempts;
}

void ModelState::Loaded(const std::string& path, std::shared_ptr<const Servable> servable) {
  Version& version = At(path);
  version.phase = Phase::kReady;
  version.error = OkStatus();
  version.servable = std::move(servable);
}

bool ModelState::LoadFailed(const std::string& path, Status error, const RetryPolicy& retries,
                            Clock::time_point now) {
  Version& version = At(path);
  version.error = std::move(error);
  const bool again = version.aspired && version.attempts <= retries.max_retries;
  version.phase = again ? Phase::kRetrying : Phase::kFailed;
  version.retry_at = now + retries.interval;
  return again;
}

void ModelState::StartUnloading(const std::string& path) {
  Version& version = At(path);
  version.phase = Phase::kUnloading;
  version.servable.reset();
}

void ModelState::Unloaded(const std::string& path) {
  Version& version = At(path);
  version.phase = Phase::kGone;
  if (version.aspired) Restart(&version);
}

bool ModelState::settled() const { return listed_ && (available() || !AnyOf(AwaitsFirstAttempt)); }

bool ModelState::available() const { return AnyOf(IsReady); }

bool ModelState::settled_at_base_path() const {
  return listed_ && (available_at_base_path() || !AnyOf(AwaitsFirstAttempt));
}

bool ModelState::available_at_base_path() const {
  return std::any_of(versions_.begin(), versions_.end(), [this](const Version& version) {
    return IsReady(version) && LiesUnder(config_.base_path, version.directory.path);
  });
}

bool ModelState::given_up() const {
  const bool hope = AnyOf([](const Version& version) {
    return IsReady(version) || (version.aspired && !HasEnded(version));
  });
  return listed_ && AnyOf(IsAspired) && !hope;
}

bool ModelState::idle() const { return std::all_of(versions_.begin(), versions_.end(), HasEnded); }

Status ModelState::FirstError() const {
  for (const Version& version : versions_) {
    if (version.aspired && !version.error.ok()) return version.error;
  }
  return OkStatus();
}

const Version* ModelState::FindReady(int64_t version_number) const {
  for (const Version& version : versions_) {
    if (version.directory.version == version_number && IsReady(version)) return &version;
  }
  return nullptr;
}

ModelSnapshot ModelState::Snapshot() const {
  ModelSnapshot model{config_.name, config_.base_path, base_path_read_, 0, {}};
  for (const Version& version : versions_) {
    VersionSnapshot snapshot;
    snapshot.status = StatusOf(version);
    if (version.aspired && !snapshot.status.error.ok()) ++model.refused;
    snapshot.path = version.directory.path;
    for (const auto& [label, number] : config_.labels) {
      if (number == version.directory.version) snapshot.labels.push_back(label);
    }
    snapshot.servable = version.servable;
    model.versions.push_back(std::move(snapshot));
  }
  return model;
}

Version& ModelState::At(const std::string& path) {
  const auto place = std::find_if(versions_.begin(), versions_.end(), [&](const Version& version) {
    return version.directory.path == path;
  });
  assert(place != versions_.end());
  return *place;
}

bool ModelState::AnyOf(bool (*condition)(const Version&)) const {
  return std::any_of(versions_.begin(), versions_.end(), condition);
}

void ModelState::ForgetOldest() {
  const auto forgettable = [](const Version& version) {
    return !version.aspired && HasEnded(version);
  };
  size_t too_many = std::count_if(versions_.begin(), versions_.end(), forgettable);
  too_many -= std::min(too_many, kMaxEnded);
  versions_.erase(std::remove_if(versions_.begin(), versions_.end(),
                                 [&](const Version& version) {
                                   return too_many > 0 && forgettable(version) && too_many-- > 0;
                                 }),
                  versions_.end());
}

VersionStatus StatusOf(const Version& version) {
  VersionStatus status{version.directory.version, ToState(version.phase), version.error};
  std::string damage = version.servable == nullptr ? "" : version.servable->model().damage();
  if (!damage.empty()) {
    status.state = VersionState::kEnd;
    status.error = Error(StatusCode::kDataLoss, damage);
  }
  return status;
}

std::vector<std::function<void()>> ReloadWaiters::TakeSettled(
    const std::map<std::string, ModelState>& models) {
  std::vector<std::function<void()>> answers;
  std::vector<Waiter> still_waiting;
  for (Waiter& waiter : waiters_) {
    const std::optional<Status> outcome = Outcome(waiter.models, models);
    if (outcome) {
      answers.push_back(Answer(std::move(waiter.done), *outcome));
    } else {
      still_waiting.push_back(std::move(waiter));
    }
  }
  waiters_ = std::move(still_waiting);
  return answers;
}

std::vector<std::function<void()>> ReloadWaiters::TakeAll(const Status& status) {
  std::vector<std::function<void()>> answers;
  for (Waiter& waiter : waiters_) answers.push_back(Answer(std::move(waiter.done), status));
  waiters_.clear();
  return answers;
}

}  // namespace colcast::models
