// Runs requests on shadow versions, one at a time, on a thread of lowest priority and only while a
// worker is idle. A request that waits for that longer than a second is dropped.
#ifndef COLCAST_SERVER_SHADOW_SHADOW_RUNNER_H_
#define COLCAST_SERVER_SHADOW_SHADOW_RUNNER_H_

#include <cstdint>
#include <memory>

#include "server/base/thread.h"
#include "server/engine/engine.h"
#include "server/scheduling/worker_pool.h"
#include "server/shadow/shadows.h"

namespace colcast::shadow {

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

#endif  // COLCAST_SERVER_SHADOW_SHADOW_RUNNER_H_
