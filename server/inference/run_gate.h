// Runs of tf.Examples (Classify, Regress, MultiInference) share with those of Predict what there is
// for all.
#ifndef COLCAST_SERVER_INFERENCE_RUN_GATE_H_
#define COLCAST_SERVER_INFERENCE_RUN_GATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/base/status.h"
#include "server/inference/measured_run.h"
#include "server/inference/servable.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::inference {

// Of one call, on a worker. Holds what its run needs until it is gone.
class RunGate {
 public:
  explicit RunGate(scheduling::WorkerPool* workers) : workers_(workers) {}

  // Before the run, in which each of `signatures` runs once. RESOURCE_EXHAUSTED if what it needs is
  // not free; now only, if must_wait().
  Status Enter(const Servable& servable, const std::vector<std::string>& signatures, int64_t rows,
               int64_t input_bytes);

  // The run went well.
  void Learn();

  // Whether nothing is to be answered yet: the call waits and is to be made again.
  bool must_wait() const { return must_wait_; }
  void Wait(scheduling::Job* job, scheduling::Clock::duration waited);

 private:
  scheduling::WorkerPool* const workers_;
  scheduling::WorkerPool::Share share_;
  scheduling::RunNeeds needs_;
  scheduling::Clock::duration cost_{};
  int64_t rows_ = 0;
  int64_t input_bytes_ = 0;
  bool must_wait_ = false;
  std::optional<MeasuredRun> run_;  // of one signature: what each of several took is not known
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_RUN_GATE_H_
