// What a run needs, as estimated, and what it took, which its class learns from.
#ifndef COLCAST_SERVER_INFERENCE_MEASURED_RUN_H_
#define COLCAST_SERVER_INFERENCE_MEASURED_RUN_H_

#include <cstdint>

#include "server/base/allocator_state.h"
#include "server/base/status.h"
#include "server/scheduling/job.h"
#include "server/scheduling/request_class.h"

namespace colcast::inference {

// How long a run has kept its thread busy: where it gives way, without what interrupted it.
class BusyTime {
 public:
  scheduling::Clock::duration Elapsed() const { return Now() - start_; }

 private:
  static scheduling::Clock::duration Now();

  const scheduling::Clock::duration start_ = Now();
};

// A run that its class learns from, unless it is cold. `of` may be null.
class MeasuredRun {
 public:
  explicit MeasuredRun(scheduling::RequestClass* of)
      : of_(of), counts_(of != nullptr && of->warm()) {}

  // It went well.
  void Learn(int64_t size, int64_t input_bytes) {
    if (counts_) of_->cost().Observe(size, busy_.Elapsed());
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

// Of a run that is not split. `cost`: as estimated; zero if nothing is known.
scheduling::RunNeeds NeedsOfRun(scheduling::RequestClass& of, scheduling::Clock::duration cost,
                                int64_t input_bytes);

// RESOURCE_EXHAUSTED: a run is estimated to take `bytes`, of which there are at most `max_bytes`.
Status TooMuchMemory(int64_t rows, int64_t input_bytes, int64_t bytes, int64_t max_bytes);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_MEASURED_RUN_H_
