// The models being served: finds their versions on disk, loads those that the configuration wants,
// and takes those out that it does not want any more.
//
// One thread looks and decides (ModelState says what), loading and destroying have threads of their
// own, and requests see a table that is exchanged as a whole.
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
#include <thread>
#include <vector>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/models/labels.h"
#include "server/models/loader.h"
#include "server/models/model_config.h"
#include "server/models/model_state.h"
#include "server/models/model_status.h"
#include "server/models/reload_waiters.h"
#include "server/models/serving_table.h"
#include "server/models/unloader.h"
#include "server/models/warnings.h"
#include "server/wire/predict_request.h"

namespace colcast::models {

class ModelManager {
 public:
  struct Options {
    std::vector<ModelConfig> models;  // what to serve first
    // Read again every `config_file_poll_wait`, if that is not 0.
    std::string config_file;
    request_log::LogPlaces logs;  // that it may name
    std::chrono::milliseconds config_file_poll_wait{0};
    // Between looks for versions. 0: once, and again whenever the configuration changes.
    std::chrono::milliseconds poll_wait{1000};
    bool allow_labels_for_unavailable_versions = false;
    std::vector<ReadyLabel>
        ready_labels;  // Start() also waits until each names a version that serves
    // Start() fails once every version of every model was given up and none serves.
    bool fail_if_nothing_loads = false;
    int num_load_threads = 1;  // models loaded side by side, once the first ones serve
    int num_unload_threads = 1;
    RetryPolicy retries;
    // Called with each configuration, from when on it counts; may be empty.
    std::function<void(const std::vector<ModelConfig>&)> on_configured;
    Loader::Options loader;
  };

  // `engine` must outlive the manager.
  ModelManager(Options options, const engine::Engine* engine);
  // Waits for what is being loaded. Versions still in use by a caller live as long as it holds
  // them.
  ~ModelManager();

  // Starts to look for versions on a thread of its own and waits until the models are ready: for
  // each of them a version serves, or those that should have failed (for now; they are retried),
  // or there is none; and at least one model serves, unless none is configured; and `ready_labels`
  // do. CANCELLED if Stop() was called, the first error if `fail_if_nothing_loads`, and what
  // Reload() refuses.
  Status Start();
  void Stop();

  // Looks at the configuration file, if there is one, and the versions on disk without waiting for
  // the next poll. What is wrong changes nothing and is logged.
  void PollNow();

  // Serves `models` from now on and nothing else. What stays is not loaded again. At once:
  // FAILED_PRECONDITION for a label on a version that does not serve (see
  // allow_labels_for_unavailable_versions), and then nothing changes. `done` is called,
  // once and from another thread, when every model that is new, or has a new base path, has settled
  // as Start() has it, with UNKNOWN and the reasons if one has no version that serves from there.
  Status Reload(std::vector<ModelConfig> models, ReloadDone done);

  // The version to answer a request with: the one asked for, by number or by label, or the highest
  // that serves. UNAVAILABLE while the model loads its first version, NOT_FOUND for an unknown
  // model or version (UNAVAILABLE until Start() is through), INVALID_ARGUMENT without a model name
  // or for an unknown label. Never waits for a load; finding one writes no memory but a counter.
  Status Find(const ModelSpec& spec, std::shared_ptr<const Servable>* servable) const {
    return table_.Find(spec, servable);
  }

  // The versions the server knows of, in rising order, or the one asked for. Errors as
  // Find's.
  Status GetStatus(const ModelSpec& spec, std::vector<VersionStatus>* statuses) const;

  // Every model and what is known of its versions, by name.
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
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // something happened that Run() should look at
  std::map<std::string, ModelState> models_ ABSL_GUARDED_BY(mutex_);  // and those that are leaving
  int loads_in_progress_ ABSL_GUARDED_BY(mutex_) = 0;
  ReloadWaiters waiters_ ABSL_GUARDED_BY(mutex_);
  std::optional<Status> started_ ABSL_GUARDED_BY(mutex_);  // what Start() returns
  Clock::time_point next_poll_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point next_config_poll_ ABSL_GUARDED_BY(mutex_);

  // Only Run()'s thread touches these.
  std::vector<ModelConfig> file_models_;  // what the configuration file said last
  bool file_applied_ = true;
  WarningLog warnings_;

  Unloader unloader_;
  Loader loader_;  // the first to go: its threads use all of the above
  std::thread thread_;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MODEL_MANAGER_H_
