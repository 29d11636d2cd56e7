// Admits Classify, Regress and MultiInference runs, which share memory and workers with Predict.
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

// Admits one call on a worker. Holds its reservations until destroyed.
class RunGate {
 public:
  explicit RunGate(scheduling::WorkerPool* workers) : workers_(workers) {}

  // Call before a run in which each of `signatures` runs once. Returns RESOURCE_EXHAUSTED if the
  // run lacks memory or a worker; must_wait() then says whether these may become available.
  Status Enter(const Servable& servable, const std::vector<std::string>& signatures, int64_t rows,
               int64_t input_bytes);

  // Call after a successful run.
  void Learn();

  // Whether to call Wait() and run again later, instead of answering with the error.
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
  // Set only for a single signature: a run of several does not show the cost of each.
  std::optional<MeasuredRun> run_;
};

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_RUN_GATE_H_
