// Draws the requests that a shadow version also runs, holds the short queue in which they wait, and
// runs them.
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
  ModelSpec spec;    // with a version or a label, without a signature
  double share = 0;  // share of answered requests to run; above 0, at most 1
};

struct Answered {
  std::shared_ptr<const inference::Servable> shadow;  // the version that runs it
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
  // See ModelManager::Find().
  using FindServable =
      std::function<Status(const ModelSpec&, std::shared_ptr<const inference::Servable>*)>;

  Shadows(Options options, FindServable find);

  // Draws the version that also runs a request which `live` has answered; null for most requests,
  // and if that version is `live` itself. If no model has a shadow, this only checks an empty map.
  std::shared_ptr<const inference::Servable> Draw(const inference::Servable& live);

  // Queues the request for `shadow`, unless too many wait. Copies its arguments. Without values,
  // the answer is not compared.
  void Add(std::shared_ptr<const inference::Servable> shadow, const inference::Servable& live,
           const Bytes& request, const std::vector<OutputColumn>& outputs);

  // Waits for a request. Returns false after Stop().
  bool Take(Answered* answered);
  // Waits. Returns false after Stop(), which ends the wait.
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

// Runs requests on shadow versions, one at a time, on a thread of lowest priority and only while a
// worker is idle. A request that waits for that longer than a second is dropped.
class ShadowRunner {
 public:
  // Both must outlive this object. Without shadow versions there is no thread.
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
