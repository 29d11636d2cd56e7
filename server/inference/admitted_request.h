// One request to Predict that a worker has read, and what is known of it.
#ifndef COLCAST_SERVER_INFERENCE_ADMITTED_REQUEST_H_
#define COLCAST_SERVER_INFERENCE_ADMITTED_REQUEST_H_

#include <cstdint>

#include "server/base/status.h"
#include "server/engine/engine.h"
#include "server/inference/predict_run.h"
#include "server/inference/servable.h"
#include "server/scheduling/run_memory.h"
#include "server/scheduling/worker_pool.h"

namespace colcast::inference {

struct AdmittedRequest {
  PredictMember* member = nullptr;
  scheduling::RequestClass* request_class = nullptr;
  scheduling::Clock::duration cost{};  // as estimated; zero if nothing is known
  int64_t input_bytes = 0;
  bool whole = false;  // it is not split: its slices did not make it up

  const engine::PlannedRequest& plan() const { return *member->planned.plan; }
  const engine::RequestProfile& profile() const { return plan().profile; }
};

// Reads the request, or finishes it with its error: then false.
bool Admit(PredictMember* member, scheduling::Clock::duration waited, AdmittedRequest* admitted);

// What the whole request needs in one run.
scheduling::RunNeeds NeedsOf(const AdmittedRequest& admitted);

// Why there will never be memory for the request.
Status Refusal(const AdmittedRequest& admitted, const scheduling::WorkerPool& workers);

// What the queue is told.
scheduling::JobProfile JobProfileOf(const AdmittedRequest& admitted);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_ADMITTED_REQUEST_H_
