// Draws a sample of the answered requests, queues them, and runs them on a shadow version of their
// model.
#ifndef COLCAST_SERVER_SHADOW_SHADOWS_H_
#define COLCAST_SERVER_SHADOW_SHADOWS_H_

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/base/thread.h"
#include "server/engine/engine.h"
#include "server/inference/servable.h"
#include "server/scheduling/job.h"
#include "server/scheduling/worker_pool.h"
#include "server/shadow/drift.h"
#include "server/wire/bytes.h"
#include "server/wire/predict_request.h"

namespace colcast::shadow {

struct ShadowVersion {
  ModelSpec spec;    // has a version or a label, but no signature
  double share = 0;  // the fraction of answered requests to run; above 0, at most 1
};

struct Answered {
  std::shared_ptr<const inference::Servable> shadow;  // the version that also runs the request
  int64_t live_version = 0;
  std::string request;  // a serialized PredictRequest
  KeptOutputs outputs;
  scheduling::Clock::time_point since;
};

// All methods may be called from any thread.
class Shadows {
 public:
  struct Options {
    std::vector<ShadowVersion> versions;  // at most one per model
    size_t max_queued_requests = 16;
    size_t max_queued_bytes = 64 << 20;
  };
  // ModelManager::Find()
  using FindServable =
      std::function<Status(const ModelSpec&, std::shared_ptr<const inference::Servable>*)>;

  Shadows(Options options, FindServable find);

  // Draws at random whether a request that `live` has answered also runs on a shadow version.
  // Returns that version; null if it is not drawn, not loaded or `live` itself, or if the queue is
  // full. If no model has a shadow version, this only checks an empty map.
  std::shared_ptr<const inference::Servable> Draw(const inference::Servable& live);

  // Queues copies of the request and of `outputs`, the live answer, unless too many requests wait
  // or the outputs have no values to compare.
  void Add(std::shared_ptr<const inference::Servable> shadow, const inference::Servable& live,
           const Bytes& request, const std::vector<OutputColumn>& outputs);

  // Waits for a request and dequeues it. Returns false after Stop().
  bool Take(Answered* answered);
  // Waits for `time`. Returns false as soon as Stop() is called.
  bool Wait(std::chrono::milliseconds time);
  void Stop();

  bool any() const { return !versions_.empty(); }
  DriftCounts& counts() { return counts_; }
  const DriftCounts& counts() const { return counts_; }

 private:
  const Options options_;
  const FindServable find_;
  std::map<std::string, ShadowVersion, std::less<>> versions_;  // by model
  DriftCounts counts_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Answered> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

// Runs queued requests on shadow versions, one at a time, on a thread of lowest priority, and only
// while a worker is idle. Drops a request after a second without an idle worker.
class ShadowRunner {
 public:
  // Both must outlive this object. Starts no thread if there are no shadow versions.
  ShadowRunner(Shadows* shadows, scheduling::WorkerPool* workers);
  ~ShadowRunner();
  ShadowRunner(const ShadowRunner&) = delete;
  ShadowRunner& operator=(const ShadowRunner&) = delete;

 private:
  void Run();
  bool WaitUntilIdle(scheduling::Clock::time_point until);
  void RunOne(const Answered& answered);
  void NoteFailure(const Versions& versions, const Status& status);

  Shadows* const shadows_;
  scheduling::WorkerPool* const workers_;
  scheduling::Clock::time_point next_log_{};
  int64_t failed_since_log_ = 0;
  Thread thread_;
};

}  // namespace colcast::shadow

#endif  // COLCAST_SERVER_SHADOW_SHADOWS_H_
