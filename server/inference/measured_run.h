// Observes runs and measures their time and memory.
#ifndef COLCAST_SERVER_INFERENCE_MEASURED_RUN_H_
#define COLCAST_SERVER_INFERENCE_MEASURED_RUN_H_

#include <cstdint>
#include <vector>

#include "server/base/machine.h"
#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/scheduling/job.h"
#include "server/scheduling/request_class.h"

namespace colcast::inference {

// Reports the stages of a run to the traced requests in it. While an instance exists, it observes
// runs on the calling thread.
class ObservedRun final : engine::RunObserver {
 public:
  explicit ObservedRun(const engine::Model& model) : model_(model) {}
  ~ObservedRun() override {
    if (!observers_.empty()) model_.ObserveRuns(nullptr);
  }

  // Adds a request's observer, which is null if the request is not traced.
  void Add(engine::RunObserver* observer) {
    if (observer == nullptr) return;
    if (observers_.empty()) model_.ObserveRuns(this);
    observers_.push_back(observer);
  }

 private:
  void OnStage(const engine::StageRun& run) override {
    for (engine::RunObserver* const observer : observers_) observer->OnStage(run);
  }

  const engine::Model& model_;
  std::vector<engine::RunObserver*> observers_;
};

// The time for which a run keeps its thread busy. On a low-priority thread, this is CPU time,
// because wall time would include preemption.
class BusyTime {
 public:
  scheduling::Clock::duration Elapsed() const { return Now() - start_; }

 private:
  static scheduling::Clock::duration Now();

  const scheduling::Clock::duration start_ = Now();
};

// Measures a run and, unless it is cold, records the results in its class `of`, which may be null.
class MeasuredRun {
 public:
  explicit MeasuredRun(scheduling::RequestClass* of)
      : of_(of), counts_(of != nullptr && of->warm()) {}

  // Call after a successful run.
  void Learn(int64_t size, int64_t input_bytes) {
    if (counts_) {
      of_->cost().Observe(size, busy_.Elapsed());
      of_->NoteBytes(size, input_bytes);
    }
    LearnMemory(input_bytes);
  }
  void LearnMemory(int64_t input_bytes) {
    if (counts_) of_->memory().Observe(input_bytes, allocated_.bytes());
    if (of_ != nullptr) of_->NoteRun();
  }
  bool counts() const { return counts_; }

 private:
  scheduling::RequestClass* const of_;
  const bool counts_;
  const BusyTime busy_;
  const AllocationPeak allocated_;
};

// What a run needs if it is not split. `cost` is the estimate; zero if unknown.
scheduling::RunNeeds NeedsOfRun(scheduling::RequestClass& of, scheduling::Clock::duration cost,
                                int64_t input_bytes);

// Returns RESOURCE_EXHAUSTED for a run that is estimated to take `bytes` of memory when at most
// `max_bytes` are allowed.
Status TooMuchMemory(int64_t rows, int64_t input_bytes, int64_t bytes, int64_t max_bytes);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_MEASURED_RUN_H_
