// Loads each version on its own thread, so that neither requests nor polling for versions wait.
#ifndef COLCAST_SERVER_MODELS_LOADER_H_
#define COLCAST_SERVER_MODELS_LOADER_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/thread.h"
#include "server/engine/engine.h"
#include "server/inference/batching.h"
#include "server/inference/warmup.h"
#include "server/items/item_tables.h"
#include "server/models/memory_budget.h"
#include "server/models/model_status.h"
#include "server/models/version_directory.h"

namespace colcast::models {

struct LoadReport {
  std::string model_name;
  int64_t version = 0;
  int attempt = 1;  // 2 for the first retry
  Status status;
  bool loaded = false;                                // true even if warm-up then failed
  std::chrono::steady_clock::duration load_time{};    // time until graph and variables are loaded
  std::chrono::steady_clock::duration warmup_time{};  // time from then until the version may serve
  int warmup_requests = 0;
  std::string path;                // the version's directory
  std::vector<std::string> notes;  // see engine::Model::notes()
};

// Called on the loading thread, possibly on several at once, before the version serves.
using LoadListener = std::function<void(const LoadReport&)>;

class Loader {
 public:
  struct Options {
    std::vector<std::string> tags = {"serve"};
    // See MemoryBudget.
    double memory_margin_fraction = 0.2;
    inference::WarmupOptions warmup;
    inference::BatchingOptions batching;
    // Null without item tables. Must outlive all servables.
    const items::ItemTables* item_tables = nullptr;
    LoadListener on_load;  // may be empty
    // Returns an error if loading the version in `directory` would crash or hang the process. If
    // empty, nothing is checked.
    std::function<Status(const std::string& directory)> check;
  };

  struct Job {
    std::string model_name;
    VersionDirectory directory;
    int attempt = 1;
    // Off until the server is ready. Before that, there are no requests to protect, and the threads
    // that TensorFlow starts with the first model, and later uses for requests, would inherit the
    // priority.
    bool low_priority = true;
    bool check = false;  // whether to call Options::check
    // Whether another version of the model is serving, so that there is time to read the tables
    // into memory.
    bool another_serves = false;
  };

  // Receives the report and, if the load succeeded, the servable. Called on the loading thread.
  using Done = std::function<void(const LoadReport&, std::shared_ptr<const Servable>)>;

  // `engine` must outlive the loader. The destructor waits for loads in progress.
  Loader(Options options, const engine::Engine* engine);
  ~Loader() { stop_.Set(); }

  // Starts a load. Jobs run concurrently; the caller limits their number. If Start() fails, `done`
  // is not called.
  Status Start(Job job, Done done);

  // Loads and warms up a version on the calling thread, without serving it.
  Status LoadAndDiscard(const std::string& directory);

 private:
  struct Loading {
    bool finished = false;
    Thread thread;
  };

  Status WaitForTables(const engine::Model& model);
  Status Load(const Job& job, LoadReport* report, std::shared_ptr<const Servable>* servable);
  void Run(const Job& job, const Done& done);
  void JoinFinished();

  const Options options_;
  const engine::Engine* const engine_;
  MemoryBudget memory_;
  StopFlag stop_;
  std::mutex mutex_;
  std::list<Loading> loadings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_LOADER_H_
