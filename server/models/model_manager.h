// Manages the models being served: finds versions on disk, loads those that the configuration
// selects, and unloads the others.
//
// One thread polls the disk and decides what to do (ModelState). Loads and unloads run on their
// own threads. Requests find models in a ServingTable, which is never modified, only replaced.
#ifndef COLCAST_SERVER_MODELS_MODEL_MANAGER_H_
#define COLCAST_SERVER_MODELS_MODEL_MANAGER_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/engine/engine.h"
#include "server/models/loader.h"
#include "server/models/model_config.h"
#include "server/models/model_state.h"
#include "server/models/serving_table.h"
#include "server/models/warnings.h"
#include "server/wire/predict_request.h"

namespace colcast::models {

class ModelManager {
 public:
  struct Options {
    std::vector<ModelConfig> models;  // initial configuration
    // Read again every `config_file_poll_wait`, unless that is 0.
    std::string config_file;
    request_log::LogPlaces logs;
    std::chrono::milliseconds config_file_poll_wait{0};
    // The interval between searches for versions. With 0, searches once at the start and after each
    // change of the configuration.
    std::chrono::milliseconds poll_wait{1000};
    bool allow_labels_for_unavailable_versions = false;
    // Start() waits until each of these labels names a serving version.
    std::vector<ReadyLabel> ready_labels;
    // Whether Start() fails if the manager has given up on all versions of all models.
    bool fail_if_nothing_loads = false;
    int num_load_threads = 1;  // limit on concurrent loads, once the server is ready
    int num_unload_threads = 1;
    RetryPolicy retries;
    // Called with each configuration when it takes effect; may be empty.
    std::function<void(const std::vector<ModelConfig>&)> on_configured;
    Loader::Options loader;
  };

  // `engine` must outlive the manager.
  ModelManager(Options options, const engine::Engine* engine);
  // Waits for loads in progress. Callers may keep using the versions that they hold.
  ~ModelManager();

  // Starts searching for versions on a separate thread, and waits until the server is ready: each
  // model has a version that serves, or has no versions, or all of them have failed at least once
  // (failed loads are retried); at least one model serves, unless none is configured; and each of
  // `ready_labels` names a version that serves. Returns CANCELLED if Stop() was called, the first
  // load's error if `fail_if_nothing_loads` applies, or an error that Reload() may return.
  Status Start();
  void Stop();

  // Checks the configuration file, if any, and the versions on disk without waiting for the next
  // poll. Errors are only logged.
  void PollNow();

  // Serves exactly `models` from now on. Models that stay are not reloaded. Returns
  // FAILED_PRECONDITION, and changes nothing, if a label names a version that does not serve (see
  // allow_labels_for_unavailable_versions). Calls `done` once, on another thread, when each model
  // that is new or has a new base path has settled as in Start(): with UNKNOWN and the reasons if
  // one of these models has no version that serves from its base path, otherwise with OK.
  Status Reload(std::vector<ModelConfig> models, ReloadDone done);

  // The versions that answer requests; ready once Start() has finished.
  const ServingTable& served() const { return table_; }

  // Returns the known versions in ascending order, or only the requested one. Errors are those of
  // ServingTable::Find().
  Status GetStatus(const ModelSpec& spec, std::vector<VersionStatus>* statuses) const;

  // All models with their versions, sorted by name.
  std::vector<ModelSnapshot> Models() const;

 private:
  void Run();
  void PollConfigFile();
  void PollBasePaths();
  bool ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return started_ && started_->ok(); }
  Status FindStatus(const ModelSpec& spec, std::vector<VersionStatus>* statuses) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status MayApply(const std::vector<ModelConfig>& models) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(std::vector<ModelConfig> models) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UnloadAndLoad() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int MaxLoads() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartLoad(ModelState* model, const Version& version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishTable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteReadiness() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Clock::time_point NextConfigPoll() const;
  Clock::time_point NextWake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void OnLoaded(const std::string& model, const VersionDirectory& directory,
                const LoadReport& report, std::shared_ptr<const Servable> servable);
  void OnLoadFailed(ModelState* model, const VersionDirectory& directory, const Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnUnloaded(const std::string& model, const VersionDirectory& directory);

  const Options options_;
  ServingTable table_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // there is something for Run() to do
  // Includes models that are no longer configured but still have versions.
  std::map<std::string, ModelState> models_ ABSL_GUARDED_BY(mutex_);
  int loads_in_progress_ ABSL_GUARDED_BY(mutex_) = 0;
  ReloadWaiters waiters_ ABSL_GUARDED_BY(mutex_);
  std::optional<Status> started_ ABSL_GUARDED_BY(mutex_);  // the result of Start()
  Clock::time_point next_poll_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point next_config_poll_ ABSL_GUARDED_BY(mutex_);

  // Used only by Run()'s thread.
  std::vector<ModelConfig> file_models_;  // the last contents of the configuration file
  bool file_applied_ = true;
  WarningLog warnings_;

  Unloader unloader_;
  Loader loader_;  // its threads use all members above
  Thread thread_;  // destroyed first
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MODEL_MANAGER_H_
