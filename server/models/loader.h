// Loads each version on its own thread, so that neither requests nor polling for versions wait, and
// destroys versions on other threads.
#ifndef COLCAST_SERVER_MODELS_LOADER_H_
#define COLCAST_SERVER_MODELS_LOADER_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/machine.h"
#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/engine/engine.h"
#include "server/inference/batching.h"
#include "server/inference/servable.h"
#include "server/inference/warmup.h"
#include "server/items/item_tables.h"
#include "server/models/version_directory.h"

namespace colcast::models {

using inference::Servable;

// The total size of the files under `directory`, following links to files, and the size of the
// graph alone; 0 without files. Returns FAILED_PRECONDITION, naming the file, if one is a FIFO,
// socket or device, because opening it could block the load forever.
struct ModelSize {
  int64_t bytes = 0;
  int64_t graph_bytes = 0;
};
Status SizeOnDisk(const std::string& directory, ModelSize* size);

// Refuses models that do not fit in memory, before the kernel kills the server for loading them.
class MemoryBudget {
 public:
  // A model is assumed to need its size on disk, plus kGraphCopies times its graph (TensorFlow
  // copies the graph's constants that many times during a load), plus the fraction
  // `margin_fraction` of that sum. With a negative margin, everything fits.
  explicit MemoryBudget(
      double margin_fraction,
      std::function<int64_t()> available = [] { return AvailableMemory(); });

  // The memory of a load in progress, released by the destructor.
  class Reservation {
   public:
    Reservation() = default;
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

   private:
    friend class MemoryBudget;
    MemoryBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  static constexpr int64_t kGraphCopies = 10;

  // Returns RESOURCE_EXHAUSTED, with the sizes, if the model does not fit in memory along with the
  // other loads in progress.
  Status Reserve(const ModelSize& size, Reservation* reservation);

 private:
  const double margin_fraction_;
  const std::function<int64_t()> available_;
  std::mutex mutex_;
  int64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct LoadReport {
  Status status;
  std::chrono::steady_clock::duration load_time{};    // time until graph and variables are loaded
  std::chrono::steady_clock::duration warmup_time{};  // time from then until the version may serve
  int warmup_requests = 0;
  std::vector<std::string> notes;  // see engine::Model::notes()
};

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
    // Returns an error if loading the version in `directory` would crash or hang the process. If
    // empty, nothing is checked.
    std::function<Status(const std::string& directory)> check;
  };

  struct Job {
    std::string model_name;
    VersionDirectory directory;
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

// Destroys versions on separate threads. Freeing a model takes long, and the thread that releases
// the last reference usually has requests to answer.
class Unloader {
 public:
  explicit Unloader(int num_threads);
  // Waits until everything released so far is destroyed. Servables released later are destroyed by
  // the releasing thread.
  ~Unloader();
  Unloader(const Unloader&) = delete;
  Unloader& operator=(const Unloader&) = delete;

  // Returns a pointer to `servable`. When its last copy is released, one of the unloader's threads
  // destroys the servable and then calls `on_destroyed`.
  std::shared_ptr<const Servable> Share(std::shared_ptr<const Servable> servable,
                                        std::function<void()> on_destroyed);

 private:
  class Queue;

  const std::shared_ptr<Queue> queue_;  // lives as long as any pointer from Share()
  std::vector<Thread> threads_;
};

}  // namespace colcast::models

#endif  // COLCAST_SERVER_MODELS_LOADER_H_
