// The state of one configured model: its wanted and its loaded versions, and the next step. Pure
// bookkeeping, without threads or files; ModelManager acts on it.
#ifndef COLCAST_SERVER_MODELS_MODEL_STATE_H_
#define COLCAST_SERVER_MODELS_MODEL_STATE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/inference/servable.h"
#include "server/models/model_config.h"
#include "server/models/version_directory.h"

namespace colcast::models {

using inference::Servable;

// The values equal those of tensorflow.serving.ModelVersionStatus.State.
enum class VersionState { kStart = 10, kLoading = 20, kAvailable = 30, kUnloading = 40, kEnd = 50 };

struct VersionStatus {
  int64_t version = 0;
  VersionState state = VersionState::kStart;
  Status error;  // why the version ended or its last load failed; otherwise OK
};

struct VersionSnapshot {
  VersionStatus status;
  std::string path;
  std::vector<std::string> labels;  // sorted
  // Null unless the version is loaded; do not hold it for long.
  std::shared_ptr<const Servable> servable;
};

struct ModelSnapshot {
  std::string name;
  std::string base_path;
  int64_t base_path_read = 0;             // last successful read, in seconds since 1970; 0 if none
  int64_t refused = 0;                    // aspired versions that failed to load or cannot answer
  std::vector<VersionSnapshot> versions;  // ascending
};

using Clock = std::chrono::steady_clock;

struct RetryPolicy {
  int max_retries = 5;  // attempts after the first one
  std::chrono::microseconds interval = std::chrono::minutes(1);
};

// A version goes kNew -> kLoading -> kReady -> kUnloading -> kGone. After a failed attempt, it goes
// to kRetrying and back to kLoading or, if there are no retries left, to kFailed.
enum class Phase { kNew, kLoading, kRetrying, kReady, kUnloading, kGone, kFailed };

struct Version {
  VersionDirectory directory;
  bool aspired = true;  // selected by the policy
  bool still = true;    // files unchanged between the last two checks
  Phase phase = Phase::kNew;
  Status error;
  int attempts = 0;
  uint64_t tried_files = 0;  // FilesOf() at the last attempt
  bool is_outdated = false;  // serving, but files have changed since it was loaded
  Clock::time_point retry_at;
  std::shared_ptr<const Servable> servable;  // set while kReady
};

class ModelState {
 public:
  explicit ModelState(ModelConfig config) : config_(std::move(config)) {}

  const ModelConfig& config() const { return config_; }
  void SetConfig(ModelConfig config);
  // Call when the model is no longer configured. Until SetConfig(), no version is aspired.
  void Leave();
  bool leaving() const { return leaving_; }

  // Sets the versions that the policy selects ("aspired" in TensorFlow Serving). Known versions,
  // identified by their path, keep their state. A version that appears after the first call is
  // loaded once its files have not changed between two calls, because a copy may be in progress. A
  // failed version is tried again when its files change, even if it has no retries left.
  void SetAspiredVersions(const std::vector<VersionDirectory>& directories);
  // Call if the base path cannot currently be read. The aspired versions stay the same.
  void KeepAspiredVersions() { listed_ = true; }
  // Whether one of the two methods above was called since the configuration last changed.
  bool listed() const { return listed_; }

  // Versions to unload. Like TensorFlow Serving's AvailabilityPreservingPolicy, keeps the last
  // ready version unless an aspired one is ready or none is aspired.
  std::vector<const Version*> ToUnload() const;
  // New versions and versions due for a retry, highest first.
  std::vector<const Version*> ToLoad(Clock::time_point now) const;
  // When the next retry is due; nullopt if none is pending.
  std::optional<Clock::time_point> NextRetry() const;

  // These methods record what happened to the version at `path`, which must be known.
  void StartLoading(const std::string& path);
  void Loaded(const std::string& path, std::shared_ptr<const Servable> servable);
  // Returns whether there will be another attempt.
  bool LoadFailed(const std::string& path, Status error, const RetryPolicy& retries,
                  Clock::time_point now);
  void StartUnloading(const std::string& path);
  void Unloaded(const std::string& path);

  // Whether a version is ready, or the first attempts to load the aspired ones have all ended.
  bool settled() const;
  bool available() const;  // whether a version is ready
  // Like settled() and available(), but count ready versions only under the current base path.
  // Versions under a previous base path keep serving until a version under the current one is
  // ready.
  bool settled_at_base_path() const;
  bool available_at_base_path() const;
  bool given_up() const;  // every aspired version (at least one) failed for good; none is ready
  bool idle() const;      // no version is loading, ready or unloading
  // The first error among the aspired versions; OK if there is none.
  Status FirstError() const;

  const std::vector<Version>& versions() const { return versions_; }
  const Version* FindReady(int64_t version_number) const;
  ModelSnapshot Snapshot() const;

 private:
  Version& At(const std::string& path);
  bool AnyOf(bool (*condition)(const Version&)) const;
  void ForgetOldest();

  ModelConfig config_;
  bool leaving_ = false;
  bool listed_ = false;
  int64_t base_path_read_ = 0;     // see ModelSnapshot
  std::vector<Version> versions_;  // sorted by (version, path)
};

// A version that cannot answer, because its files are damaged, is reported as ended.
VersionStatus StatusOf(const Version& version);

using ReloadDone = std::function<void(const Status&)>;

class ReloadWaiters {
 public:
  // `models` maps the names of the new models to their base paths.
  void Add(std::map<std::string, std::string> models, ReloadDone done) {
    waiters_.push_back({std::move(models), std::move(done)});
  }

  // Returns functions that answer the callers whose models have all settled: with OK, or with
  // UNKNOWN and the reasons if some do not serve, for example because a later configuration has
  // removed or moved them. Call them without holding a lock.
  std::vector<std::function<void()>> TakeSettled(const std::map<std::string, ModelState>& models);

  // Returns functions that answer all remaining callers with `status`.
  std::vector<std::function<void()>> TakeAll(const Status& status);

 private:
  struct Waiter {
    std::map<std::string, std::string> models;
    ReloadDone done;
  };

  std::vector<Waiter> waiters_;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MODEL_STATE_H_
