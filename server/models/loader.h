// Loads versions, each on a thread of its own, so that neither requests nor the search for new
// versions wait for it.
#ifndef COLCAST_SERVER_MODELS_LOADER_H_
#define COLCAST_SERVER_MODELS_LOADER_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/engine.h"
#include "server/inference/batching.h"
#include "server/inference/warmup.h"
#include "server/items/item_tables.h"
#include "server/models/memory_budget.h"
#include "server/models/model_status.h"
#include "server/models/version_directory.h"

namespace colcast::models {

// One attempt to load a version, successful or not.
struct LoadReport {
  std::string model_name;
  int64_t version = 0;
  int attempt = 1;  // 2 is the first retry
  Status status;
  bool loaded = false;                                // even if warming up then failed
  std::chrono::steady_clock::duration load_time{};    // until the graph and its variables are there
  std::chrono::steady_clock::duration warmup_time{};  // then, until it may serve
  int warmup_requests = 0;
  std::string path;                // the version's directory
  std::vector<std::string> notes;  // engine::Model::notes()
};

// Called from whatever thread loaded, possibly several at a time, before the version serves.
using LoadListener = std::function<void(const LoadReport&)>;

class Loader {
 public:
  struct Options {
    std::vector<std::string> tags = {"serve"};
    // Of a version's size on disk; what must be left of memory beside it. Negative: not looked at.
    double memory_margin_fraction = 0.2;
    inference::WarmupOptions warmup;
    inference::BatchingOptions batching;
    const items::ItemTables* item_tables = nullptr;  // outlive all servables; null: there are none
    LoadListener on_load;                            // may be empty
    // Whether the version in a directory can be loaded without harm; may be empty: they all can.
    std::function<Status(const std::string& directory)> check;
  };

  struct Job {
    std::string model_name;
    VersionDirectory directory;
    int attempt = 1;
    // Off until the server is ready, for there is no request to protect: threads that TensorFlow
    // starts with the first model, and keeps for requests, would inherit it.
    bool low_priority = true;
    bool check = false;  // first, as Options has it
  };

  // How it went, and the servable if that is well. Called on the loading thread.
  using Done = std::function<void(const LoadReport&, std::shared_ptr<const Servable>)>;

  // `engine` must outlive the loader.
  Loader(Options options, const engine::Engine* engine);
  // Waits for what is being loaded.
  ~Loader();

  // Starts to load. Jobs run side by side; how many is the caller's business. After an error `done`
  // is not called.
  Status Start(Job job, Done done);

  // Loads and warms up, on this thread, a version that serves nobody.
  Status Try(const std::string& directory);

 private:
  struct Thread {
    std::thread thread;
    bool finished = false;
  };

  Status Load(const Job& job, LoadReport* report, std::shared_ptr<const Servable>* servable);
  void Run(const Job& job, const Done& done);
  void JoinFinished();

  const Options options_;
  const engine::Engine* const engine_;
  MemoryBudget memory_;
  std::mutex mutex_;
  std::list<Thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_LOADER_H_
