// The model being served: finds its versions on disk, loads the highest one, and replaces it when
// a higher one appears. The new version is loaded before the old one goes.
#ifndef COLCAST_SERVER_MODELS_MODEL_MANAGER_H_
#define COLCAST_SERVER_MODELS_MODEL_MANAGER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/engine.h"
#include "server/models/model_status.h"
#include "server/models/version_directory.h"
#include "server/wire/predict_request.h"
#include "server/wire/status.h"

namespace colcast::models {

class ModelManager {
 public:
  struct Options {
    std::string model_name;
    std::string base_path;
    std::vector<std::string> tags = {"serve"};
    std::chrono::milliseconds poll_wait{1000};
    LoadListener on_load;  // may be empty
  };

  // `engine` must outlive the manager.
  ModelManager(Options options, const engine::Engine* engine);
  // Stops looking for versions. Versions still in use by a caller live as long as it holds them.
  ~ModelManager();

  // Waits until a version serves; says so, once, if there is none to load. Then goes on looking
  // for versions on a thread of its own. An error if the first version found can not be loaded,
  // CANCELLED if Stop() was called.
  Status Start();
  void Stop();

  // The version to answer a request with: the one asked for, or the highest. NOT_FOUND for another
  // model or version, INVALID_ARGUMENT without a model name or with a version label (there are
  // none). Never loads anything and never waits for a load.
  Status Find(const ModelSpec& spec, std::shared_ptr<const Servable>* servable) const;

  // Every version this process has seen, in rising order, or the one asked for. Errors as Find's.
  Status GetStatus(const ModelSpec& spec, std::vector<VersionStatus>* statuses) const;

  // Every model and what is known of its versions, by name.
  std::vector<ModelSnapshot> Models() const;

  // Implementation details follow.
 private:
  Status Check(const ModelSpec& spec) const;
  // The version that should serve but does not, if there is one to try.
  std::optional<VersionDirectory> NextVersion() const;
  Status LoadAndServe(const VersionDirectory& next);
  void SetState(int64_t version, VersionState state, Status error = OkStatus());
  void Poll();
  // Frees versions no request uses any more, on the calling thread.
  void ReleaseRetired();
  // False once Stop() was called.
  bool WaitForNextPoll();

  const Options options_;
  const engine::Engine* const engine_;
  mutable std::mutex mutex_;
  std::condition_variable stop_requested_;
  bool stopping_ = false;
  std::shared_ptr<const Servable> serving_;
  std::vector<VersionStatus> statuses_;
  std::vector<std::shared_ptr<const Servable>> retired_;  // only the polling thread's
  std::thread poller_;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_MODEL_MANAGER_H_
