// Reports runs of a stage to the calling thread's observer: when they ran, on how many rows, and
// how many states came from the cache.
#ifndef COLCAST_SERVER_ENGINE_PROGRAM_OBSERVED_STAGE_H_
#define COLCAST_SERVER_ENGINE_PROGRAM_OBSERVED_STAGE_H_

#include <chrono>
#include <cstdint>
#include <string_view>

#include "server/engine/engine.h"

namespace colcast::engine {

// Set by Model::ObserveRuns().
inline thread_local RunObserver* thread_observer = nullptr;

// Reports the run that its lifetime spans. Without an observer it costs one branch.
class ObservedStage {
 public:
  ObservedStage(std::string_view stage, int64_t rows, int64_t hits) : observer_(thread_observer) {
    if (observer_ != nullptr) run_ = {stage, std::chrono::steady_clock::now(), {}, rows, hits};
  }
  ~ObservedStage() {
    if (observer_ == nullptr) return;
    run_.end = std::chrono::steady_clock::now();
    observer_->OnStage(run_);
  }
  ObservedStage(const ObservedStage&) = delete;
  ObservedStage& operator=(const ObservedStage&) = delete;

 private:
  RunObserver* const observer_;
  StageRun run_;
};

}  // namespace colcast::engine

#endif  // COLCAST_SERVER_ENGINE_PROGRAM_OBSERVED_STAGE_H_
