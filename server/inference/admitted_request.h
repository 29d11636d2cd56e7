// A Predict request that a worker has read, with its plan and estimated cost.
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
  scheduling::Clock::duration cost{};  // estimated; zero if unknown
  bool whole = false;                  // must run whole, because running it in slices failed

  const engine::PlannedRequest& plan() const { return *member->planned.plan; }
  const engine::RequestProfile& profile() const { return plan().profile; }
};

// Reads and plans the request. On failure, finishes it with the error and returns false.
bool Admit(PredictMember* member, scheduling::Clock::duration waited, AdmittedRequest* admitted);

// Returns what a run of the whole request needs.
scheduling::RunNeeds NeedsOf(const AdmittedRequest& admitted);

// Returns the error for a request that can never get the memory it needs.
Status Refusal(const AdmittedRequest& admitted, const scheduling::WorkerPool& workers);

// Returns DEADLINE_EXCEEDED for a request with much input that would take far longer than its
// client waits.
Status CheckDeadline(const AdmittedRequest& admitted, int num_workers);

// Describes the request for the queue.
scheduling::JobProfile JobProfileOf(const AdmittedRequest& admitted);

}  // namespace colcast::inference

#endif  // COLCAST_SERVER_INFERENCE_ADMITTED_REQUEST_H_
