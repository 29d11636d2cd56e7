// Reports the stages of a run to the traced requests in it.
#ifndef COLCAST_SERVER_INFERENCE_OBSERVED_RUN_H_
#define COLCAST_SERVER_INFERENCE_OBSERVED_RUN_H_

#include <vector>

#include "server/engine/engine.h"

namespace colcast::inference {

// Observes the runs of the calling thread for as long as it exists.
class ObservedRun final : engine::RunObserver {
 public:
  explicit ObservedRun(const engine::Model& model) : model_(model) {}
  ~ObservedRun() override {
    if (!observers_.empty()) model_.ObserveRuns(nullptr);
  }

  // Adds a request's observer; null for a request that is not traced.
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

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_OBSERVED_RUN_H_
