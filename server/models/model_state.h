// One configured model: what should serve, what is loaded, and what to do next about it. Pure
// bookkeeping, without threads or files; the manager does what it says.
#ifndef COLCAST_SERVER_MODELS_MODEL_STATE_H_
#define COLCAST_SERVER_MODELS_MODEL_STATE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/models/model_config.h"
#include "server/models/model_status.h"
#include "server/models/version_directory.h"

namespace colcast::models {

using Clock = std::chrono::steady_clock;

struct RetryPolicy {
  int max_retries = 5;  // attempts after the first one that failed
  std::chrono::microseconds interval = std::chrono::minutes(1);
};

// A version goes kNew -> kLoading -> kReady -> kUnloading -> kGone. A failed attempt leads to
// kRetrying and from there to kLoading again, the last one to kFailed.
enum class Phase { kNew, kLoading, kRetrying, kReady, kUnloading, kGone, kFailed };

struct Version {
  VersionDirectory directory;
  bool aspired = true;  // the policy asks for it
  bool still = true;    // its files were the same when they were last looked at
  Phase phase = Phase::kNew;
  Status error;
  int attempts = 0;
  uint64_t tried_files = 0;  // what its files were at the last attempt
  Clock::time_point retry_at;
  std::shared_ptr<const Servable> servable;  // while kReady
};

class ModelState {
 public:
  explicit ModelState(ModelConfig config) : config_(std::move(config)) {}

  const ModelConfig& config() const { return config_; }
  void SetConfig(ModelConfig config);
  // It is not configured any more: nothing of it is aspired until SetConfig.
  void Leave();
  bool leaving() const { return leaving_; }

  // The versions the policy asks for ("aspired", as in TensorFlow Serving). Known ones keep their
  // state: a version is known by its path. Those that come after the first call are loaded once
  // their files stand still from one call to the next: they may still be copied. One that was given
  // up on is tried again once it has other files.
  void SetAspiredVersions(const std::vector<VersionDirectory>& directories);
  // The base path cannot be read, for now: what is aspired stays as it is.
  void KeepAspiredVersions() { listed_ = true; }
  // Whether one of the two was called since the configuration last changed.
  bool listed() const { return listed_; }

  // Keeps the model available, as TensorFlow Serving's AvailabilityPreservingPolicy: a version that
  // is not aspired goes only once an aspired one is ready, or if there is none to come.
  std::vector<const Version*> ToUnload() const;
  // New versions and those whose time to retry has come, the highest first.
  std::vector<const Version*> ToLoad(Clock::time_point now) const;
  // When ToLoad may have more; nothing if no retry waits.
  std::optional<Clock::time_point> NextRetry() const;

  // What happened to the version at `path`, which the state knows.
  void StartLoading(const std::string& path);
  void Loaded(const std::string& path, std::shared_ptr<const Servable> servable);
  // True if there will be another attempt.
  bool LoadFailed(const std::string& path, Status error, const RetryPolicy& retries,
                  Clock::time_point now);
  void StartUnloading(const std::string& path);
  void Unloaded(const std::string& path);

  // A version is ready; or each aspired one has failed, at least for now; or there is none.
  bool settled() const;
  bool available() const;  // a version is ready
  // The same for the configuration's base path alone: versions under another one go on serving
  // while there is none here.
  bool settled_at_base_path() const;
  bool available_at_base_path() const;
  bool given_up() const;  // there are aspired versions, each failed for good, and none is ready
  bool idle() const;      // no version is loading, ready or unloading
  // The first error among the aspired versions; ok if none has one.
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
  std::vector<Version> versions_;  // in rising order of (version, path)
};

VersionState ToState(Phase phase);

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MODEL_STATE_H_
